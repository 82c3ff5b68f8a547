// What one run's events say about what it does; the same as loopagent/core/loop_heard.py.
import { BUTTONS, STATE_OF_ASK, type Part, type Word } from "./loopView.js";
import type { Ask } from "./wire.js";

/** An event, or a part of one, of which nothing is known. */
export type Loose = Readonly<Record<string, unknown>>;

export const WAITING: ReadonlySet<string> = new Set(STATE_OF_ASK.values());
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
const WORDS: ReadonlyMap<string, Word> = new Map([
  ["queued", "queued"],
  ["resumable", "resumable"],
]);
const FORMING: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["Plan", ["plan", "Plan"]],
  ["Chat", ["question", "Question"]],
  ["ClientTools", ["client_tool", "Call of a client tool"]],
]);

/** A text of an event; empty when there is none. */
export const text = (body: Loose, key: string): string => (typeof body[key] === "string" ? body[key] : "");
/** A whole number of an event; 0 when there is none. */
export const number = (body: Loose, key: string): number => (Number.isInteger(body[key]) ? (body[key] as number) : 0);
/** A list of an event; empty when there is none. */
export const listed = (body: Loose, key: string): unknown[] => (Array.isArray(body[key]) ? body[key] : []);
/** Whether a value is an object. */
export const isObject = (value: unknown): value is Loose =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** An object of an event; empty when there is none. */
export const object = (body: Loose, key: string): Loose => (isObject(body[key]) ? body[key] : {});

/** A part of a tree as far as its events were heard. */
export class Heard implements Part {
  word: Word = "running";
  reason: string | null = null;
  child = false;
  agents: string[] = [];
  streaming = false;
  forming: Ask | null = null;
  heard = true;
  readonly people = new Map<string, Ask>();
  readonly client = new Map<string, Ask>();
  /** Child runs by the call that they work for. */
  readonly calls = new Map<string, string>();
  readonly actions = new Set<string>();
  calling = false;
  /** The last reply has arrived: what still comes of it is late. */
  whole = false;
  turn = 0;
  /** The last attempt at the reply that failed. */
  attempt = 0;
  /** It is thought to be left in the middle; whatever it does next shows that it is not. */
  lost = false;

  constructor(readonly runId: string) {}

  get asks(): Ask[] {
    return [...this.people.values(), ...this.client.values()];
  }

  get children(): string[] {
    return [...new Set(this.calls.values())];
  }

  get busy(): boolean {
    return this.calling || this.actions.size > 0;
  }

  /** Something comes of it, so somebody works on it. */
  found(): void {
    if (this.lost) [this.word, this.lost] = ["running", false];
  }

  /** No reply is arriving any more. */
  hush(): void {
    [this.streaming, this.forming] = [false, null];
  }

  /** Nothing happens in the run any more. */
  end(reason: string): void {
    [this.word, this.reason, this.calling, this.whole] = ["idle", reason, false, true];
    this.hush();
    for (const one of [this.people, this.client, this.calls, this.actions]) one.clear();
  }

  /** Note an open request, as an event or a run tells of it. */
  put(body: Loose): void {
    const [kind, requestId] = [text(body, "kind"), text(body, "requestId")];
    (kind === "client_tool" ? this.client : this.people).set(requestId, {
      requestId,
      runId: this.runId,
      agents: listed(body, "agents").map(String),
      kind,
      title: text(body, "title"),
      primary: buttonOf(body, "primary"),
      secondary: buttonOf(body, "secondary"),
      enabled: true,
      expiresAt: typeof body["expiresAt"] === "number" ? body["expiresAt"] : null,
    });
  }
}

function buttonOf(body: Loose, which: string): Ask["primary"] {
  const given = object(body, which);
  return { decision: text(given, "decision"), label: text(given, "label") };
}

type Handler = (run: Heard, event: Loose, data: Loose) => void;

const running: Handler = (run) => void (run.word = "running");
const waiting: Handler = (run) => void (run.word = "waiting");

/** The state that the server tells of; without a number it is its guess, which a later event corrects. */
export const stateTold: Handler = (run, event, data) => {
  const [word, persisted, ask] = [text(data, "state"), "seq" in event, object(data, "ask")];
  if (run.word === "idle" && !persisted) return;
  if (text(ask, "runId") === run.runId) run.agents = listed(ask, "agents").map(String);
  if (word === "idle") return run.end(text(data, "reason"));
  run.lost = word === "resumable" && !persisted;
  run.word = WAITING.has(word) ? "waiting" : (WORDS.get(word) ?? "running");
  if (word === "resumable") {
    run.reason = text(data, "reason");
    run.hush();
  }
  if (WAITING.has(word) && Object.keys(ask).length > 0) run.put(ask);
};

const turnStarted: Handler = (run, event) => {
  run.hush();
  [run.word, run.calling, run.whole] = ["running", true, false];
  [run.turn, run.attempt] = [number(event, "turn"), 0];
};

const reply: Handler = (run) => {
  run.hush();
  [run.calling, run.whole] = [false, true];
};

const turnEnded: Handler = (run, event, data) => {
  reply(run, event, data);
  run.actions.clear();
};

const retry: Handler = (run, _event, data) => {
  run.hush();
  run.attempt = number(data, "attempt");
};

/** A piece of a reply, unless it comes too late to be one of the reply that is arriving. */
const arriving: Handler = (run, event, data) => {
  const [turn, attempt] = [number(event, "turn"), number(data, "attempt")];
  const late = (run.turn && turn && turn !== run.turn) || (attempt > 0 && attempt <= run.attempt);
  run.found();
  if (late || run.whole || run.word !== "running") return;
  run.streaming = true;
  for (const one of [data, ...listed(data, "fields")]) if (isObject(one)) look(run, one);
};

function look(run: Heard, piece: Loose): void {
  if (text(piece, "field") !== "nextStep.type" || piece["done"] === false) return;
  const [kind, title] = FORMING.get(text(piece, "text") || text(piece, "value")) ?? ["", ""];
  const buttons = BUTTONS.get(kind);
  if (!buttons) return void (run.forming = null);
  const [primary, secondary] = buttons;
  const { runId, agents } = run;
  run.forming = { requestId: null, runId, agents, kind, title, primary, secondary, enabled: false, expiresAt: null };
}

const retracted: Handler = (run, _event, data) => {
  const fields = listed(data, "fields");
  if (fields.length === 0) run.hush();
  else if (fields.includes("nextStep.type")) run.forming = null;
};

const paused: Handler = (run) => {
  run.hush();
  [run.word, run.reason] = ["resumable", "paused"];
};

const childOver: Handler = (run, _event, data) => {
  const child = text(data, "runId");
  for (const [call, one] of [...run.calls]) if (one === child) run.calls.delete(call);
};

const asked: Handler = (run, _event, data) => run.put(data);

const settled: Handler = (run, _event, data) => {
  run.people.delete(text(data, "requestId"));
  run.client.delete(text(data, "requestId"));
};

const ended: Handler = (run, event, data) => {
  const word = text(event, "type").replace("run.", "");
  run.end(word === "failed" ? text(data, "reason") : word);
};

/** The loop stopped; of a run that goes on later, its numbered events say what for. */
const idle: Handler = (run, _event, data) => {
  const status = text(data, "status");
  if (ENDED.has(status) && run.word !== "idle") run.end(status);
};

/** What each type of event changes; the others say nothing about what a run does. */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["run.started", running],
  ["run.state", stateTold],
  ["run.waiting", waiting],
  ["run.resumed", running],
  ["run.paused", paused],
  ["run.completed", ended],
  ["run.failed", ended],
  ["run.cancelled", ended],
  ["run.idle", idle],
  ["turn.started", turnStarted],
  ["turn.ended", turnEnded],
  ["reply.delta", arriving],
  ["reply.snapshot", arriving],
  ["reply.retracted", retracted],
  ["reply.received", reply],
  ["reply.rejected", reply],
  ["reply.truncated", reply],
  ["model.retry", retry],
  ["action.started", (run, _event, data) => void run.actions.add(text(data, "callId"))],
  ["action.completed", (run, _event, data) => void run.actions.delete(text(data, "callId"))],
  ["action.rejected", (run, _event, data) => void run.actions.delete(text(data, "callId"))],
  ["subagent.started", (run, _event, data) => void run.calls.set(text(data, "callId"), text(data, "runId"))],
  ["subagent.completed", childOver],
  ["request.created", asked],
  ["request.resolved", settled],
  ["request.expired", settled],
  ["request.cancelled", settled],
  ["client_tool.requested", asked],
  ["client_tool.completed", settled],
]);
