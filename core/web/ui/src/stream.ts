// The event stream. EventSource cannot send a token, so server-sent events are read from a
// response.
import { APIError, send, type Events } from "./api";

export interface Listener {
  /** Receives events of one index, in log order. */
  events(batch: Events): void;
  /** Is called if events were missed that the server no longer stores. */
  lost(): void;
  /** Is called if the stream starts after the newest index: the server has another state than the events before. */
  ahead(): void;
  /** Reports whether the stream is connected, and why not. */
  connected(ok: boolean, reason: string): void;
}

/** Follows the stream from an index until the signal is aborted, and reconnects. */
export async function follow(from: number, topics: string[], listener: Listener, signal: AbortSignal): Promise<void> {
  let last = ""; // ID of the last message
  for (let failures = 0; !signal.aborted; ) {
    try {
      const query = new URLSearchParams([...topics.map((t) => ["topic", t]), ["index", String(from)], ["namespace", "*"]]);
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const response = await send("/v1/event/stream?" + query.toString(), { headers, signal });
      if (!response.body) throw new Error("the response has no body");
      listener.connected(true, "");
      failures = 0;
      for await (const message of messages(response.body)) {
        if (message.id) last = message.id;
        if (message.event === "lost") listener.lost();
        if (message.event === "ahead") listener.ahead();
        if (message.event === "events") listener.events(JSON.parse(message.data) as Events);
      }
      throw new Error("the server closed the stream");
    } catch (err) {
      if (signal.aborted) return;
      listener.connected(false, err instanceof Error ? err.message : String(err));
      if (err instanceof APIError && err.needsToken) return;
      await sleep(Math.min(250 * 2 ** failures++, 10_000), signal);
    }
  }
}

interface Message {
  id: string;
  event: string;
  data: string;
}

async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) yield parse(block);
  }
}

/** Parses one message. Lines without a field, which keep the connection alive, are comments. */
function parse(block: string): Message {
  const message: Message = { id: "", event: "", data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    const field = line.slice(0, colon);
    if (field === "id" || field === "event" || field === "data") message[field] = line.slice(colon + 2);
  }
  return message;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
