/** One message of a stream of server-sent events. */
export interface Message {
  /** Only when the message itself brings one. */
  id: string | null;
  event: string;
  data: string;
}

/** Reads server-sent events out of pieces of text, however they are cut. */
export class SseParser {
  #rest = "";
  #ended = false;
  #id: string | null = null;
  #event = "";
  #data: string[] = [];
  #begun = false;

  /** Take a piece; gives the messages that it completes. */
  feed(piece: string): Message[] {
    if (!this.#begun && piece !== "") {
      this.#begun = true;
      if (piece.startsWith("\uFEFF")) piece = piece.slice(1);
    }
    // A line feed that belongs to a carriage return at the end of the last piece ends no second line.
    if (this.#ended && piece.startsWith("\n")) [piece, this.#ended] = [piece.slice(1), false];
    if (piece !== "") this.#ended = piece.endsWith("\r");
    const lines = piece.split(/\r\n|\r|\n/);
    lines[0] = this.#rest + (lines[0] ?? "");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): Message[] {
    if (line === "") return this.#complete();
    const colon = line.indexOf(":");
    if (colon === 0) return [];
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return [];
  }

  #complete(): Message[] {
    const message = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const told = this.#data.length > 0;
    [this.#id, this.#event, this.#data] = [null, "", []];
    return told ? [message] : [];
  }
}
