;; Work that is done while a deep recursion returns, in a region of its own:
;; nothing on the way back enters a function or a loop.
(module
  (global $done (export "done") (mut i32) (i32.const 0))
  (func $deep (export "deep") (param $n i32)
    (if (local.get $n)
      (then (call $deep (i32.sub (local.get $n) (i32.const 1)))))
    (block $skip
      (block $work
        (br_if $work (i32.const 1))
        (br $skip))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1)))
      (global.set $done (i32.add (global.get $done) (i32.const 1))))))
