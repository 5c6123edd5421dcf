;; Blocks, loops and branches of every kind. The expected ticks are in
;; meter_test.go: count them by the rules of doc.go before you change either.
(module
  (func $empty (export "empty"))
  (func (export "straight") (param i32) (result i32)
    local.get 0
    i32.const 3
    i32.mul)
  (func (export "locals") (local i32 i64 f64))
  (func (export "count") (param $n i32) (result i32)
    (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
    local.get $i)
  (func (export "arms") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.const 1))
      (else (i32.add (i32.const 1) (i32.const 1)))))
  (func (export "guard") (param i32) (result i32)
    (if (local.get 0) (then (return (i32.const 7))))
    i32.const 8)
  (func (export "early") (param i32) (result i32)
    (block $out
      (block $in
        (br_if $in (local.get 0))
        (br $out))
      (return (i32.const 1)))
    i32.const 2)
  (func (export "table") (param i32) (result i32)
    (block $c
      (block $b
        (block $a
          (br_table $a $b $c (local.get 0))
          (drop (i32.const 9)))
        (return (i32.const 10)))
      (return (i32.const 20)))
    i32.const 30)
  (func (export "dead") (result i32)
    (return (i32.const 1))
    (drop (i32.const 2))
    (loop (br 0))
    (drop (br_if 0 (i32.const 4) (i32.const 5)))
    i32.const 3)
  (func (export "calls") (param i32) (result i32)
    call $empty
    (block (br_if 0 (local.get 0)) (call $empty))
    call $empty
    i32.const 1)
  (func (export "multi") (param i32) (result i32 i32)
    local.get 0
    i32.const 5
    (loop (param i32 i32) (result i32 i32)
      (if (param i32 i32) (result i32 i32) (i32.const 0)
        (then (br 1)))
    ))
  (func (export "nested") (param i32) (result i32)
    (block $out
      (block $mid
        (block $in
          (br_if $out (local.get 0))))
      (drop (i32.const 1)))
    i32.const 2)
  (func (export "eight") (param i32)
    (if (local.get 0)
      (then (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)))))
  (func (export "nine") (param i32)
    (if (local.get 0)
      (then (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (return)))
    (drop (i32.const 1)))
  (func (export "meet") (param i32) (result i32)
    (loop (block $b (br_if $b (local.get 0)) (call $empty)) (call $empty))
    i32.const 1)
  (func (export "spin") (loop $l (block $b (br $l))))
  (func (export "spin_if") (loop (if (i32.const 1) (then (br 1)))))
  (func $recurse (export "recurse") (call $recurse)))
