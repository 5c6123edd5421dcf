import { Bytes, Ints } from "./views";

/** The table that columns of texts refer to. */
@unmanaged
export class Texts {
  /** The number of texts. */
  length: i32;
  end: Ints = changetype<Ints>(0);
  bytes: Bytes = changetype<Bytes>(0);
  size: i32;

  /** The start of a text in bytes. */
  from(id: i32): i32 {
    return id > 0 && id < this.length ? this.end[id - 1] : 0;
  }

  /** The end of a text in bytes; a text that is not in the table is empty. */
  to(id: i32): i32 {
    if (<u32>id >= <u32>this.length) return 0;
    const to = this.end[id];
    return this.from(id) > to || <u32>to > <u32>this.size ? this.from(id) : to;
  }

  /** Returns a text as a string, which is an object: for configure rather than hooks. */
  get(id: i32): string {
    const from = this.from(id);
    return String.UTF8.decodeUnsafe(changetype<usize>(this.bytes) + from, this.to(id) - from);
  }

  /** Reports whether a text equals the given one. It creates no object. */
  equals(id: i32, text: string): bool {
    let at = this.from(id), to = this.to(id), i = 0;
    while (at < to) {
      if (i >= text.length) return false;
      const point = <u32>text.codePointAt(i);
      i += point >= 0x10000 ? 2 : 1;
      const n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (at + n > to || !this.holds(at, n, point)) return false;
      at += n;
    }
    return i == text.length;
  }

  /** Reports whether the n bytes from at on encode a code point. */
  private holds(at: i32, n: i32, point: u32): bool {
    for (let k = n - 1; k > 0; k--) {
      if (this.bytes[at + k] != <u8>(0x80 | (point & 0x3f))) return false;
      point >>= 6;
    }
    const lead: u32 = n == 1 ? 0 : n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0;
    return this.bytes[at] == <u8>(lead | point);
  }
}
