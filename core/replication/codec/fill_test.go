package codec_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// limits holds the greatest value of each enumeration.
var limits = map[reflect.Type]uint64{
	reflect.TypeFor[model.JobType]():        model.JobTypes - 1,
	reflect.TypeFor[model.NodeStatus]():     uint64(model.NodeDown),
	reflect.TypeFor[model.DesiredStatus]():  uint64(model.DesiredEvict),
	reflect.TypeFor[model.ClientStatus]():   uint64(model.ClientLost),
	reflect.TypeFor[model.EvalStatus]():     uint64(model.EvalCancelled),
	reflect.TypeFor[model.Search]():         model.Searches - 1,
	reflect.TypeFor[model.Verdict]():        model.Verdicts - 1,
	reflect.TypeFor[replication.PolicyOp](): uint64(replication.OpBlock),
}

// fullCommand returns a command with every field set. It shows that a codec drops no
// field: each has its own value.
func fullCommand(k replication.Kind) replication.Command {
	c := k.New()
	(&filler{}).fields(reflect.ValueOf(c).Elem())
	return c
}

// drawEntry draws an entry with a random command. Its fields are random, and zero
// now and then.
func drawEntry(t *rapid.T) *replication.Entry {
	f := &filler{t: t}
	c := rapid.SampledFrom(replication.Kinds()).Draw(t, "kind").New()
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		// A subject that is required is never nil.
		switch field, name := v.Field(i), v.Type().Field(i).Name; {
		case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct &&
			!strings.HasSuffix(name, "Eval") && name != "Batch":
			f.must(field)
		default:
			f.fill(field)
		}
	}
	if a, ok := c.(*replication.ApplyPlans); ok {
		a.Batch = f.batch()
	}
	return &replication.Entry{Time: int64(f.n), Key: f.text(), Command: c}
}

// A filler sets fields by reflection. Without t it sets every field, to values that
// differ and are always the same.
type filler struct {
	t *rapid.T
	n int // distinguishes values
}

// zero draws whether a field keeps its zero value; without t it never does.
func (f *filler) zero() bool { return f.t != nil && rapid.IntRange(0, 3).Draw(f.t, "zero") == 0 }

// fill sets a value of any type. Batches are special, because their allocations refer
// to jobs of the batch.
func (f *filler) fill(v reflect.Value) {
	f.n++
	if f.zero() {
		return
	}
	if v.Type() == reflect.TypeFor[*apply.Batch]() {
		v.Set(reflect.ValueOf(f.batch()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.must(v.Elem())
	case reflect.Struct:
		f.fields(v)
	case reflect.Slice:
		n := 2
		if f.t != nil {
			n = rapid.IntRange(0, 2).Draw(f.t, "length")
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.must(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.must(value)
			v.SetMapIndex(key, value)
		}
	default:
		f.scalar(v)
	}
}

// must sets a value that may not be nil. A list or map with nil elements has no
// encoding.
func (f *filler) must(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		f.n++
		f.fields(v)
		return
	}
	f.fill(v)
}

// fields sets every field of a struct that is encoded.
func (f *filler) fields(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !slices.Contains(replicationtest.Derived[v.Type()], field.Name) && (field.IsExported() || field.Anonymous) && v.Field(i).CanSet() {
			f.fill(v.Field(i))
		}
	}
	switch x := v.Addr().Interface().(type) { // counts of 32 bits
	case *model.Choice:
		x.Options, x.Omitted = int(uint32(x.Options)), int(uint32(x.Omitted))
	case *model.RankedOption:
		x.Victims = int(uint32(x.Victims))
	}
}

// scalar sets a value without parts. Enumerations stay within their limits, since
// decoding refuses others.
func (f *filler) scalar(v reflect.Value) {
	number := uint64(f.n)
	if f.t != nil {
		number = rapid.Uint64().Draw(f.t, "number")
	}
	limit := uint64(math.MaxUint64)
	if m, ok := limits[v.Type()]; ok {
		limit = m
		if f.t == nil {
			number = m
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.t == nil || number%2 == 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if limit != math.MaxUint64 && f.t != nil {
			number %= limit + 1
		}
		v.SetUint(number)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(number))
	case reflect.Float64:
		v.SetFloat(float64(number) / 3)
	case reflect.String:
		v.SetString(f.text())
	default:
		panic("codec_test: cannot fill a " + v.Type().String())
	}
}

// text returns a UUID, or a text that is not one: the two are encoded differently.
func (f *filler) text() string {
	if f.t == nil {
		return fmt.Sprintf("%08x-0000-4000-8000-0123456789ab", f.n)
	}
	if rapid.Bool().Draw(f.t, "uuid") {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(f.t, "raw")
		return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
	}
	return rapid.String().Draw(f.t, "text")
}

// batch returns a batch with allocations of two jobs.
func (f *filler) batch() *apply.Batch {
	b := &apply.Batch{Now: int64(f.n), Ineligible: []string{"n1", "n2"}}
	for p := range 2 {
		plan := &model.Plan{}
		f.must(reflect.ValueOf(plan).Elem())
		plan.Moves, plan.Groups = nil, make([]model.CommitGroup, 3) // Moves is not encoded
		j := &model.Job{Namespace: "ns", ID: fmt.Sprint("j", p), ModifyIndex: uint64(7 + p), Groups: []*model.Group{{Name: "a"}, {Name: "b"}}}
		for _, g := range []int{0, 2} {
			to := &plan.Groups[g]
			for i := range 3 {
				to.Placements = append(to.Placements, f.alloc(j, i%2))
			}
			to.Updates = append(to.Updates, f.alloc(j, 1))
			f.fill(reflect.ValueOf(&to.Stops).Elem())
			f.fill(reflect.ValueOf(&to.Evictions).Elem())
			f.fill(reflect.ValueOf(&to.Claims).Elem())
			f.fill(reflect.ValueOf(&to.Assignments).Elem())
			f.fill(reflect.ValueOf(&to.Withdrawals).Elem())
			f.fill(reflect.ValueOf(&to.ReleasedClaims).Elem())
		}
		b.Plans = append(b.Plans, apply.BatchPlan{Plan: plan, Groups: []int{0, 2}})
	}
	return b
}

func (f *filler) alloc(j *model.Job, group int) *model.Allocation {
	a := &model.Allocation{}
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Job" && name != "Group" && name != "NodePos" {
			f.fill(v.Field(i))
		}
	}
	a.Job, a.Group = j, j.Groups[group]
	return a
}
