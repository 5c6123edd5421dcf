package wasm

import (
	"errors"
	"testing"
)

func TestTrapPlace_NamesInnermostFunctions(t *testing.T) {
	for text, want := range map[string]string{
		"wasm error: unreachable": "",
		"wasm error: unreachable\nwasm stack trace:\n\t.divide(i32,i32) i32\n\t.$12()\n\t.cede_score_victims(i32) i32\n\t.outer()": " in divide, called by function 12, called by cede_score_victims",
		"wasm error: unreachable\nwasm stack trace:\n\t.thrifty::score(&[u8])(i32)":                                                " in thrifty::score(&[u8])",
		"x\nwasm stack trace:\n\t.a()\n\t\t0x1f: code:1\n\t.b()":                                                                   " in a, called by b",
		"x\nwasm stack trace:\n\t.a\x1b[2J()":                                                                                      " in a?[2J",
	} {
		if got := new(Module).trapPlace(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGoPlace_SkipsRuntime(t *testing.T) {
	const trace = "panic: boom [recovered]\n\ngoroutine 1 gp=0x1 [running]:\npanic({0x1, 0x2})\n\truntime/panic.go:792 +0x18\n" +
		"runtime.panicIndex(0x1)\n\truntime/panic.go:115 +0x2\n" +
		"github.com/acme/thrifty.(*Policy).ScoreVictims(0x1, {0x2})\n\tgithub.com/acme/thrifty/score.go:41 +0x5\nmain.main()\n\tmain.go:1 +0x1\n"
	for text, want := range map[string]string{
		trace:                         "thrifty.(*Policy).ScoreVictims, score.go:41",
		"panic: boom":                 "",
		"\ngoroutine 1 [running]:\nx": "",
		"\ngoroutine 1 [running]:\npanic(1)\n\truntime/panic.go:1 +0x1\n": "",
	} {
		if got := goPlace([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
