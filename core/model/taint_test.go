package model_test

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// When an allocation that came at 100s has to leave a node that got the taint
// key=value:NoExecute at 200s and another one at 1000s.
func TestGroup_NoExecuteAt(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	first := model.Taint{Key: "key", Value: "value", Effect: model.NoExecute, Since: 200 * second}
	later := model.Taint{Key: "other", Effect: model.NoExecute, Since: 1000 * second}
	exists := func(key string, stay time.Duration) model.Toleration {
		return model.Toleration{Key: key, Operator: model.TolerationExists, Effect: model.NoExecute, For: stay}
	}
	for _, c := range []struct {
		name        string
		taints      []model.Taint
		tolerations []model.Toleration
		came        int64
		at          int64 // seconds; 0: it may stay
	}{
		{"not tolerated", []model.Taint{first}, nil, 100, 200},
		{"tolerated for ever", []model.Taint{first}, []model.Toleration{exists("key", 0)}, 100, 0},
		{"whatever the effect", []model.Taint{first}, []model.Toleration{{Key: "key", Value: "value"}}, 100, 0},
		{"of another effect", []model.Taint{first}, []model.Toleration{{Key: "key", Value: "value", Effect: model.NoSchedule}}, 100, 200},
		{"of another value", []model.Taint{first}, []model.Toleration{{Key: "key", Value: "else", Effect: model.NoExecute}}, 100, 200},
		{"for some time", []model.Taint{first}, []model.Toleration{exists("key", 300*time.Second)}, 100, 500},
		{"for some time since it came", []model.Taint{first}, []model.Toleration{exists("key", 300*time.Second)}, 700, 1000},
		{"the longest of two", []model.Taint{first}, []model.Toleration{exists("key", 300*time.Second), exists("", 400*time.Second)}, 100, 600},
		{"the first of two taints", []model.Taint{later, first}, []model.Toleration{exists("", 300*time.Second)}, 100, 500},
		{"one of two taints", []model.Taint{first, later}, []model.Toleration{exists("key", 0), exists("other", 10*time.Second)}, 100, 1010},
		{"no such effect", []model.Taint{{Key: "key", Effect: model.NoSchedule}}, nil, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &model.Group{Tolerations: c.tolerations}
			at, by := g.NoExecuteAt(&model.Node{Taints: c.taints}, c.came*second)
			if (by != nil) != (c.at != 0) || at != c.at*second {
				t.Errorf("at %v by %v, want at %vs", time.Duration(at), by, c.at)
			}
		})
	}
}

func TestStampTaints_RetainsTheTimeOfExistingTaints(t *testing.T) {
	t.Parallel()
	before := []model.Taint{{Key: "a", Effect: model.NoExecute, Since: 5}, {Key: "b", Value: "x", Effect: model.NoExecute, Since: 6}}
	got := model.StampTaints([]model.Taint{
		{Key: "a", Effect: model.NoExecute, Set: true}, {Key: "b", Value: "y", Effect: model.NoExecute}, {Key: "c", Effect: model.NoSchedule, Since: 9},
	}, before, 100)
	for i, want := range []int64{5, 100, 0} {
		if got[i].Since != want {
			t.Errorf("%v: since %d, want %d", got[i], got[i].Since, want)
		}
	}
}
