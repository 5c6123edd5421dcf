;; A host function that charges for its own work, called in a loop and in a
;; function that has nothing else.
(module
  (import "env" "spend" (func $spend))
  (func (export "work") (param $n i32)
    (loop $l
      (call $spend)
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $l (local.get $n))))
  (func (export "once") (call $spend)))
