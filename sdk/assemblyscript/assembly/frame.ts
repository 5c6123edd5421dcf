// The frame: header, entries, columns and answers by id. sdk/ABI.md is its
// specification. There is one frame at a time.

const MAGIC: u32 = 0x45444543;
const HEADER: u32 = 80;
const ENTRY: u32 = 16;

/** Ids 0xGGNN: groups 1 to 7 of at most 24 columns; then those of answers. */
const GROUP: u32 = 24;
const COLUMNS: u32 = 7 * GROUP;
const ANSWERS: u32 = 22;

/** A slot per ID: type (0: the frame has none), count, address of data, of the entry. */
const SLOTS: usize = memory.data(3040, 16); // (COLUMNS + ANSWERS) * 16

/** Types of columns. */
export const U8: u32 = 1;
export const I32: u32 = 2;
export const I64: u32 = 3;
export const F64: u32 = 4;

/** A count that any number of elements matches. */
export const ANY: u64 = u64.MAX_VALUE;

let base: usize = 0;
let size: u32 = 0;
export let now: i64 = 0;
export let options: u32 = 0;
export let rows: u32 = 0;
export let dims: u32 = 0;
export let requests: u32 = 0;

/** Set if anything that was read from the frame is malformed. */
export let bad: bool = false;

/** The buffer that cede_alloc has returned. */
let room: usize = 0;
let roomSize: u32 = 0;

/** cede_alloc. */
export function alloc(bytes: u32): usize {
  if (bytes <= roomSize) return room;
  const wanted = <u64>bytes + <u64>(bytes >> 2) + 16;
  // The runtime traps if memory is exhausted, so it allocates only available memory.
  if (wanted > 0x3fff0000) return 0;
  if (ASC_RUNTIME == 0 && !grow(<usize>wanted)) return 0;
  if (room) heap.free(room);
  room = heap.alloc(<usize>wanted);
  roomSize = <u32>wanted;
  return room;
}

/** Grows the memory so that the runtime "stub" can allocate so many bytes. */
function grow(bytes: usize): bool {
  const last = heap.alloc(16);
  heap.free(last);
  const have = <usize>memory.size() << 16, want = last + bytes + 32;
  return want <= have || memory.grow(<i32>((want - have + 65535) >> 16)) >= 0;
}

/** Reads header and entries of a frame, which must be in the buffer of cede_alloc. */
export function read(at: usize, length: u32, op: u32): bool {
  if (at == 0 || at != room || length > roomSize || length < HEADER) return false;
  base = at;
  const frameSize = load<u32>(at, 12);
  if (load<u32>(at) != MAGIC || load<u16>(at, 4) != 1 || load<u32>(at, 8) < HEADER) return false;
  if (frameSize < HEADER || frameSize > length) return false;
  size = frameSize;
  now = load<i64>(at, 24);
  options = load<u32>(at, 32);
  rows = load<u32>(at, 36);
  dims = load<u32>(at, 40);
  requests = load<u32>(at, 44);
  bad = false;
  // Every row and every option occupies at least one byte of the frame.
  if (load<u32>(at, 16) != op || options > size || rows > size || dims > 1024 || requests > 1024) return false;
  memory.fill(SLOTS, 0, (COLUMNS + ANSWERS) * 16);
  return readList(load<u32>(at, 48), load<u32>(at, 52)) && readList(load<u32>(at, 56), load<u32>(at, 60));
}

/** Reads the entries of columns or of answers. */
function readList(count: u32, from: u32): bool {
  if (from > size || count > (size - from) / ENTRY) return false;
  for (let e = base + from; count > 0; count--, e += ENTRY) {
    let type = load<u32>(e, 4), at = load<u32>(e, 8), n = load<u32>(e, 12);
    const shift: u32 = type == U8 ? 0 : type == I32 ? 2 : 3;
    if (type < U8 || type > F64) { // a type of a newer host
      type = u32.MAX_VALUE;
      n = 0;
    } else if (at % 8 != 0 || at > size || n > (size - at) >> shift) return false;
    const slot = slotOf(load<u32>(e));
    if (slot == 0) continue; // a column of a newer host
    store<u32>(slot, type);
    store<u32>(slot, n, 4);
    store<usize>(slot, base + at, 8);
    store<usize>(slot, e, 12);
  }
  return true;
}

/** The slot of an ID; 0 for an ID of a newer host. */
function slotOf(id: u32): usize {
  const group = (id >> 8) - 1, k = (id & 255) - 1;
  if (k < GROUP && group < COLUMNS / GROUP) return SLOTS + ((GROUP * group + k) << 4);
  const answer = id - 0x1001;
  return answer < ANSWERS ? SLOTS + ((COLUMNS + answer) << 4) : 0;
}

/** The number of elements of a column, 0 if the frame has none. */
export function count(id: u32): u32 {
  return load<u32>(slotOf(id), 4);
}

/** The address of a column of so many elements, 0 if the frame has none. */
export function find(id: u32, type: u32, n: u64): usize {
  const slot = slotOf(id);
  if (load<u32>(slot) == 0) return 0;
  if (load<u32>(slot) != type || (n != ANY && <u64>load<u32>(slot, 4) != n)) bad = true;
  return load<usize>(slot, 8);
}

/** The address of a required column. */
export function must(id: u32, type: u32, n: u64): usize {
  const at = find(id, type, n);
  if (at == 0 && n > 0) bad = true;
  return at;
}

/** A column of one i32; 0 if the frame has none. */
export function word(id: u32): i32 {
  const at = find(id, I32, 1);
  return at == 0 || bad ? 0 : load<i32>(at);
}

/** A column of one i64. */
export function long(id: u32): i64 {
  const at = find(id, I64, 1);
  return at == 0 || bad ? 0 : load<i64>(at);
}

/** Checks positions, which begin at 0, ascend, and end at n: policies index by them. */
export function checkAscending(first: usize, elements: u32, n: u32): void {
  if (first == 0 || bad) return;
  let at = 0, wrong = load<i32>(first) != 0;
  for (let i: u32 = 0; i < elements; i++) {
    const x = load<i32>(first + (i << 2));
    if (x < at) wrong = true;
    at = x;
  }
  if (wrong || <u32>at != n) bad = true;
}

/** Checks numbers of rows of a table that has so many. */
export function checkBelow(first: usize, elements: u32, n: u32): void {
  for (let i: u32 = 0; i < elements && !bad; i++) {
    if (load<u32>(first + (i << 2)) >= n) bad = true;
  }
}

/** Sets the number of elements of an answer. */
export function putCount(id: u32, n: u32): void {
  store<u32>(load<usize>(slotOf(id), 12), n, 12);
}

/** Writes the error message, truncated to the available space. */
export function putError(text: string): void {
  const at = load<u32>(base, 64), space = load<u32>(base, 68);
  if (at > size - 4 || space > size - 4 - at) return;
  const bytes = String.UTF8.encode(text), n = min<u32>(<u32>bytes.byteLength, space);
  memory.copy(base + at + 4, changetype<usize>(bytes), n);
  store<u32>(base + at, n);
}
