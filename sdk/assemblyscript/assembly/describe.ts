// The answer to describe.

import * as frame from "./frame";
import { ANY, I32, I64, U8 } from "./frame";
import { Info } from "./policy";
import { Setting } from "./settings";

const KINDS: StaticArray<string> = ["", "bool", "integer", "number", "duration", "text", "texts", "numbers"];

/** Writes the description of a policy; settings is null if it is not configurable. */
export function putDescription(info: Info, hooks: i32, settings: Setting[] | null): bool {
  const flags = <i32>info.adaptive | (<i32>info.ascending << 1) | (<i32>info.keepRedundant << 2) |
    (settings === null ? 0 : 8) | (<i32>info.elastic << 4) | (<i32>info.multiCluster << 5) |
    (<i32>info.leastFirst << 6) | (<i32>info.youngestFirst << 7) | (<i32>info.monotone << 8);
  if (!putWord(0x1003, hooks) || !putWord(0x1004, flags) || !putWord(0x1005, info.delta)) return false;
  const columns = frame.must(0x1006, I64, 1);
  if (frame.bad) return false;
  store<i64>(columns, info.columns);
  return putText(0x1001, info.name) && putText(0x1002, info.version) &&
    putText(0x1007, settings === null ? "" : json(settings));
}

function putWord(id: u32, value: i32): bool {
  const at = frame.must(id, I32, 1);
  if (frame.bad) return false;
  store<i32>(at, value);
  return true;
}

/** Writes a text and its full length, even if only its start fits. */
function putText(id: u32, text: string): bool {
  const at = frame.must(id, U8, ANY), room = frame.count(id);
  if (frame.bad) return false;
  const bytes = String.UTF8.encode(text), n = <u32>bytes.byteLength;
  memory.copy(at, changetype<usize>(bytes), min(n, room));
  frame.putCount(id, n);
  return true;
}

function json(settings: Setting[]): string {
  let text = "[";
  for (let i = 0; i < settings.length; i++) {
    text += (i > 0 ? "," : "") + jsonOf(settings[i]);
  }
  return text + "]";
}

function jsonOf(s: Setting): string {
  let text = '{"name":' + quote(s.name) + ',"kind":' + quote(KINDS[s.kind]) + ',"doc":' + quote(s.doc) +
    ',"default":' + quote(s.preset);
  if (s.isRequired) text += ',"required":true';
  if (s.min.length > 0) text += ',"min":' + s.min;
  if (s.max.length > 0) text += ',"max":' + s.max;
  text += list(',"oneOf":[', s.texts);
  if (s.low.length > 0) text += ',"range":[' + s.low + "," + s.high + "]";
  return text + list(',"choices":[', s.values) + "}";
}

/** Returns a list of texts after its beginning, or nothing if it is empty. */
function list(begin: string, texts: StaticArray<string>): string {
  let text = "";
  for (let i = 0; i < texts.length; i++) {
    text += (i == 0 ? begin : ",") + quote(texts[i]);
  }
  return texts.length > 0 ? text + "]" : text;
}

function quote(text: string): string {
  let quoted = '"';
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c == 0x22 || c == 0x5c) quoted += "\\";
    quoted += c < 0x20 ? "\\u00" + (c < 0x10 ? "0" : "1") + "0123456789abcdef".charAt(c & 15) : text.charAt(i);
  }
  return quoted + '"';
}
