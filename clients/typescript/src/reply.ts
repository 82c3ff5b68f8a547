import type { StreamEvent } from "./events.js";
import { isObject, listed, number, object, text, type Loose } from "./loopHeard.js";

const OVER: ReadonlySet<string> = new Set(["turn.started", "turn.ended", "model.retry", "stream.reset"]);

/** The reply of one run while it arrives: its texts, put together from whatever pieces and snapshots come. */
export class ReplyText {
  /** What has arrived, by field: `message`, `reasoning`, `nextStep.plan`, … */
  readonly fields = new Map<string, string>();
  #attempt = 0;

  constructor(readonly runId: string) {}

  /** The text for the person, as far as it has arrived. */
  get message(): string {
    return this.fields.get("message") ?? "";
  }

  /** Take an event; true when a text has changed. */
  add(given: StreamEvent): boolean {
    const event = given as unknown as Loose;
    const [kind, data] = [text(event, "type"), object(event, "data")];
    if (text(event, "runId") !== this.runId) return false;
    if (OVER.has(kind)) return this.#clear(kind);
    if (kind === "reply.retracted") return this.#retract(listed(data, "fields").map(String));
    if (kind !== "reply.delta" && kind !== "reply.snapshot") return false;
    const attempt = number(data, "attempt");
    if (attempt < this.#attempt) return false;
    if (attempt > this.#attempt || kind === "reply.snapshot") this.fields.clear();
    this.#attempt = attempt;
    const pieces = kind === "reply.delta" ? [data] : listed(data, "fields").filter(isObject);
    for (const one of pieces) {
      const field = text(one, "field");
      if (typeof one["text"] === "string") this.fields.set(field, (this.fields.get(field) ?? "") + one["text"]);
    }
    return pieces.length > 0;
  }

  #clear(kind: string): boolean {
    if (kind !== "model.retry") this.#attempt = 0;
    const changed = this.fields.size > 0;
    this.fields.clear();
    return changed;
  }

  #retract(fields: string[]): boolean {
    if (fields.length === 0) this.fields.clear();
    for (const one of fields) this.fields.delete(one);
    return true;
  }
}
