;; Every victim has the score +Inf: never evict. This is an answer and not a fault.
(module
  (memory (export "memory") 32)
  (data (i32.const 16) "hostile")
  (func (export "cede_abi_version") (result i32) (i32.const 0x10000))
  (func (export "cede_alloc") (param i32) (result i32) (i32.const 1024)) ;; all there is from here on
  ;; The entry of the n-th answer of a frame, and the answer itself.
  (func $entry (param $frame i32) (param $n i32) (result i32)
    (i32.add (i32.add (local.get $frame) (i32.load offset=60 (local.get $frame))) (i32.mul (local.get $n) (i32.const 16))))
  (func $answer (param $frame i32) (param $n i32) (result i32)
    (i32.add (local.get $frame) (i32.load offset=8 (call $entry (local.get $frame) (local.get $n)))))
  (func (export "cede_describe") (param $frame i32) (param i32) (result i32)
    (memory.copy (call $answer (local.get $frame) (i32.const 0)) (i32.const 16) (i32.const 7))
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 0)) (i32.const 7))
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 1)) (i32.const 0)) ;; no version
    (i32.store offset=12 (call $entry (local.get $frame) (i32.const 6)) (i32.const 0)) ;; no settings
    (i32.store (call $answer (local.get $frame) (i32.const 2)) (i32.const 2)) ;; score victims
    (i32.const 0))
  (func (export "cede_score_victims") (param $frame i32) (param i32) (result i32)
    (local $i i32)
    (loop $rows
      (f64.store (i32.add (call $answer (local.get $frame) (i32.const 1)) (i32.mul (local.get $i) (i32.const 8))) (f64.const inf))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $rows (i32.lt_u (local.get $i) (i32.load offset=36 (local.get $frame)))))
    (i32.const 0))
)
