package evalqueue

import (
	"reflect"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

func TestPlanResult_RoundTrip(t *testing.T) {
	for _, want := range []*model.PlanResult{
		{},
		{Committed: []int{0, 1, 300}, Index: 1 << 40},
		{Committed: []int{2}, RefreshIndex: 7, Rejected: []model.Rejection{
			{Group: 0, NodeID: "n1", Reason: "node is ineligible"},
			{Group: 3, Places: []int{0, 5, 1000}, NodeID: "n2"},
			{Group: 4, Places: []int{}, Reason: "x"},
		}},
	} {
		b, err := EncodePlanResult(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodePlanResult(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestDecodePlanResult_RejectsTruncatedInput(t *testing.T) {
	b, err := EncodePlanResult(&model.PlanResult{Committed: []int{1, 2}, Rejected: []model.Rejection{{NodeID: "node", Reason: "reason"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, len(b) - 1} {
		if r, err := DecodePlanResult(b[:n]); err == nil {
			t.Errorf("first %d of %d bytes: got %+v", n, len(b), r)
		}
	}
	if r, err := DecodePlanResult([]byte(`{"Committed":null}`)); err == nil {
		t.Errorf("JSON: got %+v", r)
	}
}
