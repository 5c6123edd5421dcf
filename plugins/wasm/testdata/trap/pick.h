static int32_t divisor;

__attribute__((noinline)) static int32_t pick(int32_t row, int32_t by) {
  divisor = by;
  for (int32_t i = 0; i < row; i++) divisor += i & 1; // charges between the copied parts
  return row / divisor; // the trap
}
