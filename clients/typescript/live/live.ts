// Against a real server: node build/live/live.js SCENARIO BASE-URL. Ends with an error when something is not as it should be.
import assert from "node:assert/strict";
import { ApiError, LoopAgent, LoopFold, ReplyText, type LoopState, type Run, type RunEvent } from "../src/index.js";

const [scenario = "", baseUrl = ""] = process.argv.slice(2);
const client = new LoopAgent({ baseUrl, session: "a secret of this script" });
type Act = (state: LoopState, fold: LoopFold) => Promise<unknown>;

/** Follow a run to its end; whenever the loop waits, it is checked against the server's word, and `act` is called. */
async function drive(run: Run, acts: Act[]): Promise<{ state: LoopState; numbers: number[]; events: RunEvent[] }> {
  const [fold, events, left] = [new LoopFold(run.id), [] as RunEvent[], [...acts]];
  const seen = new Set<string>();
  for await (const event of client.follow(run.id, { minDelayMs: 50 })) {
    fold.add(event);
    if (event.type !== "stream.reset") events.push(event);
    const { state, ask } = fold.state;
    const waits = ["interactive", "followup", "client_tool"].includes(state);
    if (!waits || !ask?.requestId || seen.has(ask.requestId)) continue;
    seen.add(ask.requestId);
    const told = await client.run(run.id, { waitSeconds: 10 });
    assert.deepEqual(fold.state, told.state);
    assert.deepEqual(LoopFold.ofRun(told).state, told.state);
    assert.deepEqual(fold.asks, told.requests);
    await left.shift()?.(fold.state, fold);
  }
  assert.equal(left.length, 0, `${left.length} more waits were expected`);
  const ended = await client.run(run.id);
  assert.deepEqual(fold.state, ended.state);
  assert.equal(fold.seq, ended.seq);
  const numbers = events.flatMap((one) => ("seq" in one && one.seq ? [one.seq] : []));
  assert.deepEqual(numbers, Array.from({ length: ended.seq }, (_, at) => at + 1));
  const stored = events.filter((one) => "seq" in one && one.seq);
  assert.deepEqual(stored, await client.events(run.id));
  return { state: fold.state, numbers, events };
}

const start = (agent: string, more: object = {}): Promise<Run> => client.start({ agent, message: "Go.", ...more });
const ask = (state: LoopState): NonNullable<LoopState["ask"]> => state.ask ?? assert.fail("nothing is asked");
const refused = (status: number) => (error: unknown) => error instanceof ApiError && error.status === status;

const scenarios: Record<string, () => Promise<void>> = {
  async approve() {
    const { state } = await drive(await start("mailer"), [
      async (now) => {
        assert.equal(now.primary?.decision, "approve");
        await client.approve(ask(now));
        await assert.rejects(client.reject(ask(now)), refused(409));
      },
    ]);
    assert.equal(state.reason, "completed");
  },

  async edit() {
    const { events } = await drive(await start("mailer"), [(now) => client.edit(ask(now), { to: "eve" })]);
    const started = events.find((one) => one.type === "action.started");
    assert.deepEqual(started?.data.params, { to: "eve" });
  },

  async reject() {
    const { events } = await drive(await start("mailer"), [(now) => client.reject(ask(now), "Not to Ann.")]);
    assert.ok(events.some((one) => one.type === "action.rejected"));
  },

  async answer() {
    const { events } = await drive(await start("asker"), [
      async (now) => {
        assert.equal(now.state, "followup");
        await client.answer(ask(now), "Porto");
      },
      (now) => client.message(ask(now).runId, "By train."),
    ]);
    const answered = events.filter((one) => one.type === "request.resolved").map((one) => one.data.feedback);
    assert.deepEqual(answered, ["Porto", "By train."]);
  },

  async tools() {
    const { events } = await drive(await start("mapper"), [
      (now) => client.toolResult(ask(now), { shown: true }),
      (now) => client.toolError(ask(now), "No map here."),
    ]);
    const over = events.filter((one) => one.type === "client_tool.completed").map((one) => one.data.ok);
    assert.deepEqual(over, [true, false]);
  },

  async child() {
    const run = await start("boss");
    const { state } = await drive(run, [
      async (now) => {
        assert.deepEqual(ask(now).agents, ["boss", "mailer"]);
        assert.notEqual(ask(now).runId, run.id);
        await client.approve(ask(now));
      },
    ]);
    assert.equal(state.reason, "completed");
  },

  async cancel() {
    const run = await start("sleeper");
    await client.message(run.id, "Also this.");
    setTimeout(() => void client.cancel(run.id, "Enough."), 300);
    const { state, events } = await drive(run, []);
    assert.equal(state.reason, "cancelled");
    assert.ok(events.some((one) => one.type === "run.message_queued"));
  },

  async streams() {
    const run = await start("talker");
    const [fold, reply, states, texts] = [new LoopFold(run.id), new ReplyText(run.id), new Set<string>(), new Set<string>()];
    let answered = false;
    for await (const event of client.follow(run.id)) {
      fold.add(event);
      if (fold.state.state === "followup" && !answered) {
        answered = true;
        await client.answer(ask(fold.state), "Go on.");
      }
      states.add(fold.state.state);
      if (reply.add(event) && answered) texts.add(reply.message);
    }
    assert.ok(states.has("streaming"), [...states].join());
    assert.ok(texts.size > 2, [...texts].join(" | "));
    assert.ok([...texts].every((one) => "Well, here is a long story.".startsWith(one)), [...texts].join(" | "));
    assert.equal(fold.state.state, "idle");
    const late = client.follow(run.id, { after: fold.seq });
    assert.equal((await late.next()).done, true); // of an ended run nothing more comes
  },

  async restart() {
    const run = await start("napper");
    console.log("started");
    const { state } = await drive(run, []);
    assert.equal(state.reason, "completed");
  },
};

for (const name of scenario.split(",")) {
  await scenarios[name]?.();
  console.log(`ok ${name}`);
}
