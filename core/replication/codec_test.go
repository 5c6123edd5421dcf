package replication

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// commands is one of each.
func commands() []Command {
	return []Command{
		&Bootstrap{}, &SetVersion{}, &RegisterJob{}, &StopJob{}, &StopAllocs{}, &WriteEvals{}, &ApplyPlans{},
		&RegisterNodes{}, &ChangeNodes{}, &DeleteNodes{}, &UpdateAllocs{}, &SetConfig{}, &UpsertPriorityClass{},
		&DeletePriorityClass{}, &Collect{}, &PutChunk{}, &LoadPolicy{}, &CheckPolicy{}, &ChangePolicy{}, &PutToken{},
		&DeleteToken{}, &UpsertBudget{}, &DeleteBudget{}, &UpsertClusters{}, &UpsertBinding{}, &DeleteBinding{},
		&EndAssignments{},
	}
}

func roundTrip(t rapid.TB, e *Entry) {
	t.Helper()
	got, err := Decode(Encode(e))
	if err != nil {
		t.Fatalf("%T: %v", e.Command, err)
	}
	if diff := cmp.Diff(e, got, equal); diff != "" {
		t.Fatalf("%T is not what it was (-written +read):\n%s", e.Command, diff)
	}
}

// With every field set, one that the codec forgets shows.
func TestCodec_ForgetsNoFieldOfTheModel(t *testing.T) {
	for _, c := range commands() {
		f := &filler{}
		f.fields(reflect.ValueOf(c).Elem())
		if r, ok := c.(*RegisterJob); ok {
			for _, p := range r.Batch.Plans { // of another job than the one that is registered
				p.Plan.Job.ID = "other"
			}
		}
		roundTrip(t, &Entry{Time: 5, Key: "k", Hash: [32]byte{1, 31: 2}, Command: c})
	}
}

func TestCodec_LosesNothing(t *testing.T) {
	checkProperty(t, 2, func(t *rapid.T) {
		f := &filler{t: t}
		c := rapid.SampledFrom(commands()).Draw(t, "command")
		c = reflect.New(reflect.TypeOf(c).Elem()).Interface().(Command)
		v := reflect.ValueOf(c).Elem()
		for i := range v.NumField() {
			switch field := v.Field(i); {
			case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct &&
				!strings.HasSuffix(v.Type().Field(i).Name, "Eval") && v.Type().Field(i).Name != "Batch":
				f.must(field)
			default:
				f.fill(field)
			}
		}
		if a, ok := c.(*ApplyPlans); ok {
			a.Batch = f.batch()
		}
		roundTrip(t, &Entry{Time: int64(f.n), Key: f.text(), Command: c})
	})
}
