// The loop state of a run as its events tell it; the same as loopagent/core/loop_fold.py.
import type { Run, StreamEvent } from "./events.js";
import { HANDLERS, Heard, WAITING, isObject, listed, number, object, stateTold, text, type Loose } from "./loopHeard.js";
import { combine, openAsks } from "./loopView.js";
import type { Ask, LoopState } from "./wire.js";

const TAKES: ReadonlySet<string> = new Set(["request.resolved", "run.message_queued"]);

/**
 * What a run is doing, by its events.
 *
 * @param events As they came, ephemeral ones included.
 * @param runId The run to look at, with the runs below it; the root when left out.
 */
export function loopState(events: Iterable<StreamEvent>, runId?: string): LoopState {
  const fold = new LoopFold(runId);
  for (const event of events) fold.add(event);
  return fold.state;
}

/** Takes the events of a run and of the runs below it, one by one. */
export class LoopFold {
  /** Number of the last stored event: where to follow on from. */
  seq = 0;
  #runId: string;
  #root = "";
  #first = "";
  #parts = new Map<string, Heard>();
  #answered = new Set<string>();

  constructor(runId = "") {
    this.#runId = runId;
  }

  /** A fold that begins with a run as the server returns it, for whoever follows it from its `seq` on. */
  static ofRun(run: Run): LoopFold {
    const fold = new LoopFold(run.id);
    fold.seq = run.seq;
    fold.#seed(run as unknown as Loose);
    return fold;
  }

  /** What the run is doing now. */
  get state(): LoopState {
    return combine(this.#lookedAt, this.#parts);
  }

  /** Every open request of the run and of the runs below it that it waits for. */
  get asks(): Ask[] {
    return openAsks(this.#lookedAt, this.#parts);
  }

  get #lookedAt(): string {
    return this.#runId || (this.#parts.has(this.#root) ? this.#root : this.#first);
  }

  /** Take an event; one that was taken before or belongs to another tree changes nothing. */
  add(given: StreamEvent): void {
    const event = given as unknown as Loose;
    const [kind, runId] = [text(event, "type"), text(event, "runId")];
    if (kind === "stream.reset") return this.#reset(event);
    const data = object(event, "data");
    if (!runId || this.#foreign(event) || this.#again(event, kind, data)) return;
    this.#first ||= runId;
    const run = kind === "run.created" ? this.#made(runId, event, data) : this.#of(runId);
    if ("seq" in event) run.found();
    HANDLERS.get(kind)?.(run, event, data);
    this.#around(run, kind, event, data);
  }

  #of(runId: string): Heard {
    const known = this.#parts.get(runId) ?? new Heard(runId);
    this.#parts.set(runId, known);
    return known;
  }

  #made(runId: string, event: Loose, data: Loose): Heard {
    const run = new Heard(runId);
    run.child = text(event, "parentRunId") !== "";
    run.agents = [...(this.#parts.get(text(event, "parentRunId"))?.agents ?? []), text(data, "agent")];
    this.#parts.set(runId, run);
    return run;
  }

  /** What an event says about more than what its run does by itself. */
  #around(run: Heard, kind: string, event: Loose, data: Loose): void {
    const child = this.#parts.get(text(data, "runId"));
    if (kind === "subagent.started" && child && child.runId !== this.#runId) child.heard = false;
    else if (kind === "client_tool.completed") this.#answered.add(text(data, "requestId"));
    else if (TAKES.has(kind) && [text(data, "by"), text(event, "decidedBy")].includes("model")) run.heard = true;
  }

  #foreign(event: Loose): boolean {
    const root = text(event, "rootRunId");
    this.#root ||= root;
    return root !== "" && root !== this.#root;
  }

  /** Whether a stored event was taken before. Open calls of client tools are sent again, to be sure. */
  #again(event: Loose, kind: string, data: Loose): boolean {
    if (!("seq" in event)) return false;
    const seq = number(event, "seq");
    if (seq > this.seq) {
      this.seq = seq;
      return false;
    }
    return kind !== "client_tool.requested" || this.#answered.has(text(data, "requestId"));
  }

  /** Begin anew with the run as it is now; the events from `after` on follow. */
  #reset(event: Loose): void {
    this.#parts.clear();
    this.#answered.clear();
    this.seq = number(event, "after");
    this.#seed(object(event, "run"));
  }

  #seed(run: Loose): void {
    const [runId, state] = [text(run, "id"), object(run, "state")];
    [this.#root, this.#first] = [text(run, "rootRunId") || runId, runId];
    const first = this.#of(runId);
    [first.agents, first.child] = [[text(run, "agent")], (run["parentRunId"] ?? null) !== null];
    const word = text(state, "state");
    const still = this.#of((word === "resumable" && text(object(state, "ask"), "runId")) || runId);
    stateTold(still, {}, { ...state, state: WAITING.has(word) ? "running" : word });
    if (still !== first) first.calls.set(still.runId, still.runId);
    if (word === "idle") return;
    first.streaming = first.calling = word === "streaming";
    this.#seedAsking(first, still, run, word);
    this.#seedBelow(first, run, word);
  }

  /** The open requests of the tree; `still` is the run that stands still, where that is why the tree does. */
  #seedAsking(first: Heard, still: Heard, run: Loose, word: string): void {
    for (const body of listed(run, "requests").filter(isObject)) {
      const asking = this.#of(text(body, "runId"));
      asking.put(body);
      if (asking === first) continue;
      const below = asking.runId.startsWith(`${still.runId}.`);
      (below ? still : first).calls.set(asking.runId, asking.runId);
      if (below || word !== "resumable") asking.word = asking.lost ? asking.word : "waiting";
      else if (asking !== still) [asking.word, asking.lost] = ["resumable", true]; // or one above it does
    }
  }

  /** The children that ask nothing. */
  #seedBelow(first: Heard, run: Loose, word: string): void {
    for (const child of listed(run, "children").map(String)) {
      const known = [...this.#parts.keys()].some((one) => one === child || one.startsWith(`${child}.`));
      if (known) continue;
      first.calls.set(child, child);
      if (word === "running" || word === "streaming") continue;
      const one = this.#of(child); // all stand still, this one without a request
      [one.word, one.lost] = ["resumable", true];
    }
    const below = [...first.calls.values()].map((one) => this.#parts.get(one));
    if (WAITING.has(word) && below.length === 0) first.word = "waiting";
    else if ((word === "running" || word === "streaming") && below.every(Boolean))
      for (const one of below) if (one) one.heard = false;
  }
}
