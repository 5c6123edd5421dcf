package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/client"
)

func reportOf(id string, decisions ...string) *client.KubernetesReport {
	r := &client.KubernetesReport{KubernetesController: client.KubernetesController{ID: id}}
	for _, node := range decisions {
		r.Decisions = append(r.Decisions, &client.KubernetesDecision{Node: node})
	}
	return r
}

func TestStore_ListsNewestDecisionsFirst(t *testing.T) {
	s := New(clock.NewVirtual(time.Unix(9, 0)))
	for _, r := range []*client.KubernetesReport{reportOf("b", "n1"), reportOf("a", "n2", "n3"), reportOf("b")} {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, d := range s.Decisions("") {
		got = append(got, d.Controller+" "+d.Node)
	}
	for _, c := range s.Controllers() {
		got = append(got, fmt.Sprint(c.ID, " ", c.Time))
	}
	if got, want := strings.Join(got, ", "), "a n3, a n2, b n1, a 9000000000, b 9000000000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if list := s.Decisions("b"); len(list) != 1 || list[0].Node != "n1" {
		t.Errorf("decisions of b: %+v", list)
	}
}

func TestStore_IsBounded(t *testing.T) {
	now := clock.NewVirtual(time.Unix(0, 0))
	s := New(now)
	for i := range MaxControllers + 3 {
		now.AdvanceTo(now.Now().Add(time.Second))
		nodes := make([]string, 100)
		for n := range nodes {
			nodes[n] = fmt.Sprint(i*100 + n)
		}
		if err := s.Put(reportOf(fmt.Sprintf("c%03d", i), nodes...)); err != nil {
			t.Fatal(err)
		}
	}
	if list := s.Controllers(); len(list) != MaxControllers || list[0].ID != "c003" {
		t.Errorf("%d controllers, the first is %s", len(list), list[0].ID)
	}
	if list := s.Decisions(""); len(list) != MaxDecisions || list[0].Node != fmt.Sprint((MaxControllers+3)*100-1) {
		t.Errorf("%d decisions, the first is %s", len(list), list[0].Node)
	}
}

func TestStore_IsBoundedInBytes(t *testing.T) {
	s := New(clock.Real{})
	const size, count = 1 << 20, 40
	for i := range count {
		r := reportOf("c1", fmt.Sprint(i))
		r.Decisions[0].Reasons = []string{strings.Repeat("x", size)}
		r.Problem = strings.Repeat("é", size)
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if list := s.Decisions(""); len(list) != 15 || list[0].Node != fmt.Sprint(count-1) {
		t.Errorf("%d decisions of 1 MiB, want 15", len(list))
	}
	if text := s.Controllers()[0].Problem; text != strings.Repeat("é", len(text)/2) || len(text) > 4<<10 || text == "" {
		t.Errorf("the problem has %d bytes", len(text))
	}
	// Empty victims are small in a report, but not in memory.
	for range 40 {
		r := reportOf("c2", "n")
		r.Decisions[0].Victims = make([]client.KubernetesPod, 300_000)
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if list := s.Decisions(""); len(list) != 0 {
		t.Errorf("%d decisions, each of which exceeds the limit", len(list))
	}
	if err := s.Put(reportOf("c1", "last")); err != nil || len(s.Decisions("")) != 1 {
		t.Errorf("%d decisions, want the last; %v", len(s.Decisions("")), err)
	}
}

func TestStore_RejectsInvalidID(t *testing.T) {
	for _, id := range []string{"", strings.Repeat("x", 254)} {
		if err := New(clock.Real{}).Put(reportOf(id)); !errors.Is(err, ErrInvalidID) {
			t.Errorf("%d characters: %v", len(id), err)
		}
	}
}
