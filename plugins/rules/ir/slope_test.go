package ir

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// A comparison of whole units with a constant changes exactly when one of its turns does.
func TestTurns_OfWholeUnitsAreExact(t *testing.T) {
	const unit = 3
	for _, op := range []Op{Eq, Ne, Lt, Le, Gt, Ge} {
		for _, slope := range []int64{-2, -1, 1, 2} {
			for number := int64(-2); number <= 2; number++ {
				for _, constantFirst := range []bool{false, true} {
					t.Run(fmt.Sprint(op, slope, number, constantFirst), func(t *testing.T) {
						checkTurns(t, op, slope, number, unit, constantFirst)
					})
				}
			}
		}
	}
}

// checkTurns compares the changes of a comparison over time with those of its turns.
func checkTurns(t *testing.T, op Op, slope, number, unit int64, constantFirst bool) {
	factor := &Node{Op: Const, Type: schema.Int, N: slope}
	duration := &Node{Op: Mul, Type: schema.Duration, Args: []*Node{{Op: Now, Type: schema.Duration}, factor}}
	args := []*Node{
		{Op: Whole, Type: schema.Int, N: unit, Args: []*Node{duration}},
		{Op: Const, Type: schema.Int, N: number},
	}
	if constantFirst {
		args[0], args[1] = args[1], args[0]
	}
	turns := (&Node{Op: op, Type: schema.Bool, Args: args}).Turns()
	for now := int64(-20); now < 20; now++ {
		holds := func(now int64) bool {
			a, b := now*slope/unit, number
			if constantFirst {
				a, b = b, a
			}
			return compareWhole(op, a, b)
		}
		turned := 0
		for _, turn := range turns {
			if turn.Slope != slope || turn.Args[0] != duration {
				t.Fatalf("turn %+v, want one of the duration", turn)
			}
			limit := turn.Args[1].N
			if compareWhole(turn.Op, (now-1)*slope, limit) != compareWhole(turn.Op, now*slope, limit) {
				turned++
			}
		}
		// Both turns of an equality may happen at once, so that it does not change.
		changed := holds(now-1) != holds(now)
		if changed != (turned == 1) {
			t.Errorf("at %d: changed %v, %d turns", now, changed, turned)
		}
	}
}

func compareWhole(op Op, a, b int64) bool {
	switch op {
	case Eq:
		return a == b
	case Ne:
		return a != b
	case Lt:
		return a < b
	case Le:
		return a <= b
	case Gt:
		return a > b
	}
	return a >= b
}
