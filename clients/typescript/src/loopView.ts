// What the parts of a tree of runs make together; the same as loopagent/core/loop_view.py.
import type { Ask, Button, LoopState } from "./wire.js";

/** What one run does by itself. */
export type Word = "queued" | "running" | "waiting" | "idle" | "resumable";

/** One run of a tree. */
export interface Part {
  runId: string;
  word: Word;
  /** Why it is idle or resumable. */
  reason: string | null;
  /** It works for another run, whose business its end is. */
  child: boolean;
  agents: string[];
  /** It asks a model or runs an action. */
  busy: boolean;
  streaming: boolean;
  /** What the reply that arrives is about to ask. */
  forming: Ask | null;
  asks: Ask[];
  children: string[];
  /** False from the moment it is given an answer until it takes it. */
  heard: boolean;
}

type Parts = ReadonlyMap<string, Part>;
type Pair = readonly [Button, Button];

const button = (decision: string, label: string): Button => ({ decision, label });
const STOP = button("terminate", "Stop the run");
const LEAVE = button("stop", "Leave it");
const WORKING: Pair = [button("message", "Send a message"), button("cancel", "Stop the run")];
const ENDED: Pair = [button("new_run", "New run"), button("continue", "Continue the conversation")];

/** The loop state of a run that waits, by the kind of what it asks. */
export const STATE_OF_ASK: ReadonlyMap<string, LoopState["state"]> = new Map([
  ["approval", "interactive"],
  ["guard", "interactive"],
  ["limit", "interactive"],
  ["plan", "interactive"],
  ["question", "followup"],
  ["client_tool", "client_tool"],
]);

/** The buttons of requests that are forming. */
export const BUTTONS: ReadonlyMap<string, Pair> = new Map([
  ["plan", [button("approve", "Approve"), button("reject", "Reject")]],
  ["question", [button("answer", "Answer"), STOP]],
  ["client_tool", [button("result", "Give the result"), button("error", "Give an error")]],
]);

const OFFERS: ReadonlyMap<string, readonly [string, string, Button, Button]> = new Map([
  ["paused", ["resume", "The run is paused", button("resume", "Go on"), STOP]],
  ["unattended", ["resume", "Nobody works on the run", button("resume", "Go on"), STOP]],
  ["limit", ["raise", "The run reached a limit", button("raise", "Raise the limit and go on"), LEAVE]],
  ["model", ["retry", "The model failed", button("retry", "Try again"), LEAVE]],
]);
const GO_ON: ReadonlySet<string> = new Set(["limit", "model"]);

/** What a run does, together with everything below it. */
export function combine(runId: string, parts: Parts): LoopState {
  const first = parts.get(runId);
  if (!first) return shown("idle", null, null, ENDED);
  if (first.word === "idle") {
    const offered = !first.child && GO_ON.has(first.reason ?? "") ? offer(first, first.reason ?? "") : null;
    return shown("idle", first.reason, offered, ENDED);
  }
  if (first.word === "queued") return shown("queued", null, null, WORKING);
  const below = underWay(runId, parts);
  const ask = below.flatMap(asksOf)[0] ?? null;
  const course = courseOf(first, parts, []);
  if (course === "waiting" && ask) return shown(STATE_OF_ASK.get(ask.kind) ?? "interactive", null, ask, null);
  if (course === "resumable") {
    const still = below.find((part) => part.word === "resumable") ?? first;
    const why = still.reason === "unattended" ? "unattended" : "paused";
    return shown("resumable", why, offer(still, why), null);
  }
  const arriving = below.filter((part) => part.streaming);
  const forming = arriving.find((part) => part.forming)?.forming ?? null;
  return shown(arriving.length > 0 ? "streaming" : "running", null, ask ?? forming, WORKING);
}

/** Every open request of a run and of the runs below it that it waits for, its own first. */
export function openAsks(runId: string, parts: Parts): Ask[] {
  return underWay(runId, parts).flatMap(asksOf);
}

/** Nobody can answer yet while a run prepares its requests, or any more once an answer is on its way. */
function asksOf(part: Part): Ask[] {
  if (part.heard && (part.word !== "running" || part.children.length > 0)) return part.asks;
  return part.asks.map((one) => ({ ...one, enabled: false }));
}

function underWay(runId: string, parts: Parts, above: readonly string[] = []): Part[] {
  const part = parts.get(runId);
  if (!part || above.includes(runId)) return [];
  return [part, ...part.children.flatMap((child) => underWay(child, parts, [...above, runId]))];
}

function courseOf(part: Part, parts: Parts, above: readonly string[]): Word {
  if (part.word !== "running") return part.word === "idle" || part.word === "queued" ? "running" : part.word;
  if (part.busy || part.children.length === 0) return "running";
  const below = part.children.map((child) => courseOfChild(child, parts, [...above, part.runId]));
  return (["running", "waiting", "resumable"] as const).find((one) => below.includes(one)) ?? "running";
}

/** A child that has not begun, or not yet told how it ended, is under way. */
function courseOfChild(runId: string, parts: Parts, above: readonly string[]): Word {
  const part = parts.get(runId);
  return !part || !part.heard || above.includes(runId) ? "running" : courseOf(part, parts, above);
}

function offer(part: Part, why: string): Ask {
  const [kind, title, primary, secondary] = OFFERS.get(why) ?? ["", "", ...ENDED];
  const { runId, agents } = part;
  return { requestId: null, runId, agents, kind, title, primary, secondary, enabled: true, expiresAt: null };
}

function shown(state: LoopState["state"], reason: string | null, ask: Ask | null, otherwise: Pair | null): LoopState {
  const asks = ask && (!otherwise || state === "idle");
  const [primary, secondary] = asks ? [ask.primary, ask.secondary] : (otherwise ?? ENDED);
  return { state, reason, ask, primary, secondary };
}
