package replication_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/replication"
)

func TestKinds_NameTheirCommands(t *testing.T) {
	for _, k := range replication.Kinds() {
		c := k.New()
		if replication.KindOf(c) != k {
			t.Errorf("kind %d creates a %T of kind %d", k, c, replication.KindOf(c))
		}
		if want := fmt.Sprintf("*replication.%s", k); fmt.Sprintf("%T", c) != want {
			t.Errorf("kind %d is %T, want %s", k, c, want)
		}
	}
	if got := replication.Kind(7); got.New() != nil || got.String() != "Kind(7)" {
		t.Errorf("an unknown kind is %s", got)
	}
}

// A command cannot be omitted from a table, and a table has no other rows.
func TestNewTable_PanicsUnlessItIsComplete(t *testing.T) {
	full := func() map[replication.Kind]int {
		rows := map[replication.Kind]int{}
		for _, k := range replication.Kinds() {
			rows[k] = int(k)
		}
		return rows
	}
	table := replication.NewTable("test", full())
	for _, k := range replication.Kinds() {
		if row, ok := table.Lookup(k); !ok || row != int(k) || table.Of(k.New()) != row {
			t.Errorf("%s has row %d, %t", k, row, ok)
		}
	}
	if _, ok := table.Lookup(7); ok {
		t.Error("an unknown kind has a row")
	}
	missing, extra := full(), full()
	delete(missing, replication.KindStopJob)
	extra[7] = 7
	for want, rows := range map[string]map[replication.Kind]int{
		`command StopJob has no row in table "test"`: missing,
		`has a row for Kind(7)`:                      extra,
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			replication.NewTable("test", rows)
		}()
	}
}
