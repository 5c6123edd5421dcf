package raftnode

import (
	"reflect"
	"testing"

	"github.com/hashicorp/raft"
)

func TestTiming_Defaults(t *testing.T) {
	v := reflect.ValueOf(Timing{}.withDefaults())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s has no default", v.Type().Field(i).Name)
		}
	}
	c := Timing{}.raft()
	c.LocalID = "x"
	if err := raft.ValidateConfig(c); err != nil {
		t.Error(err)
	}
}
