;; A start function that works for a while, and imports of every kind.
(module
  (import "env" "log" (func $log (param i32)))
  (import "env" "base" (global $base i32))
  (global $sum (export "sum") (mut i32) (i32.const 0))
  (global $from_import i32 (global.get $base))
  (func $init (local $i i32)
    (loop $l
      (global.set $sum (i32.add (global.get $sum) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 100))))
    (call $log (global.get $sum)))
  (start $init))
