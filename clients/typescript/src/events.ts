import type { EphemeralType, Envelope, EventData, Json } from "./wire.js";

/** A type of event. */
export type EventType = keyof EventData;

/** An event of one type; those that are stored have `seq`, `id` and `ts`. */
export type EventOf<T extends EventType> = Envelope & { type: T; data: EventData[T] } & (T extends EphemeralType
    ? { seq?: never }
    : { seq: number; id: string; ts: number });

/** Any public event of a run; `event.type` tells what `event.data` is. */
export type RunEvent = { [T in EventType]: EventOf<T> }[EventType];

/** The position is not kept (any more): the run as it is now, and where its events go on from. */
export interface StreamReset {
  type: "stream.reset";
  runId: string;
  after: number;
  run: Run;
}

/** What a stream brings. */
export type StreamEvent = RunEvent | StreamReset;

/** A run as `GET /runs/{id}` returns it; see the server's `/openapi.json` for all of it. */
export interface Run {
  id: string;
  rootRunId: string;
  parentRunId: string | null;
  children: string[];
  agent: string;
  status: "running" | "completed" | "failed" | "cancelled";
  state: import("./wire.js").LoopState;
  turn: number;
  payload: Json;
  message: string | null;
  reason: string | null;
  commands: Array<Record<string, Json>>;
  requests: Array<import("./wire.js").Ask>;
  clientCalls: Array<import("./wire.js").ClientToolRequested>;
  seq: number;
}
