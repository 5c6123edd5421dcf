package abi_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

// written writes the laid out frame over a buffer filled with garbage.
func written(e *abi.Encoder, buffer []byte) []byte {
	frame := abi.Grow(buffer, e.Size())
	for i := range frame {
		frame[i] = 0xa5
	}
	e.Write(frame)
	return frame
}

func load(t testing.TB, d *abi.Decoder, frame []byte, want abi.Op) {
	t.Helper()
	if op, err := d.Load(frame); err != nil || op != want {
		t.Fatalf("operation %d: %v, want %d", op, err, want)
	}
}

// allColumns is the set of columns of this version.
const allColumns = probe.AllColumns

func TestDecoder_ReadsEveryColumnThatTheEncoderWrites(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var e abi.Encoder
	var d abi.Decoder
	var buffer []byte
	for range policytest.Count(t) / 20 {
		in := policytest.RandomCandidates(r, 6, 8)
		e.Candidates(abi.OpScoreVictims, in, allColumns)
		buffer = written(&e, buffer)
		load(t, &d, buffer, abi.OpScoreVictims)
		got, err := d.Candidates()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "candidates", in, got)

		options := policytest.RandomOptions(r, 6, 4)
		e.Options(options, allColumns)
		buffer = written(&e, buffer)
		load(t, &d, buffer, abi.OpScoreOptions)
		shown, err := d.Options()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "options", options, shown)
	}
}

// same compares a sent value with the decoded one. Text numbers may differ if the
// frame appends texts to the table, and empty columns may be nil.
func same[T any](t *testing.T, what string, sent, got *T) {
	t.Helper()
	a, b := reflect.ValueOf(sent).Elem(), reflect.ValueOf(got).Elem()
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		if name == "Strings" {
			n := a.Field(i).Len()
			compare(t, what+".Strings", a.Field(i), b.Field(i).Slice(0, n))
			continue
		}
		compare(t, what+"."+name, a.Field(i), b.Field(i))
	}
}

func compare(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			t.Fatalf("%s: sent nil %v, got nil %v", path, a.IsNil(), b.IsNil())
		}
		if !a.IsNil() {
			compare(t, path, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			compare(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			t.Fatalf("%s: sent %d elements, got %d", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			compare(t, path, a.Index(i), b.Index(i))
		}
	case reflect.Float64:
		if math.Float64bits(a.Float()) != math.Float64bits(b.Float()) {
			t.Fatalf("%s: sent %v, got %v", path, a, b)
		}
	case reflect.Map:
		if a.Len()+b.Len() > 0 && !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Fatalf("%s: sent %v, got %v", path, a, b)
		}
	default:
		if !a.Equal(b) {
			t.Fatalf("%s: sent %v, got %v", path, a, b)
		}
	}
}

func TestDecoder_OmitsColumnsNotRequested(t *testing.T) {
	t.Parallel()
	in := policytest.RandomCandidates(rand.New(rand.NewPCG(3, 4)), 6, 8)
	var e abi.Encoder
	var d abi.Decoder
	e.Candidates(abi.OpScoreVictims, in, 0)
	load(t, &d, written(&e, nil), abi.OpScoreVictims)
	got, err := d.Candidates()
	if err != nil {
		t.Fatal(err)
	}
	r := got.Rows
	if len(r.Use)+len(r.Start)+len(r.LostWork)+len(r.Namespace)+len(r.Evictions)+len(r.MustLeave)+len(r.Devices) > 0 ||
		r.Labels != nil || r.Annotations != nil || got.Shared != nil || len(got.Capacity)+len(got.Place) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestConfigure_RoundTripsEveryKind(t *testing.T) {
	t.Parallel()
	list := probe.New().Settings()
	values := []policy.Value{
		{Name: "on", Kind: policy.Bool, Integer: 1},
		{Name: "count", Kind: policy.Integer, Integer: math.MinInt64},
		{Name: "weight", Kind: policy.Number, Number: math.Copysign(0, -1)},
		{Name: "span", Kind: policy.Duration, Integer: 1},
		{Name: "order", Kind: policy.Text, Text: "größte"},
		{Name: "spare", Kind: policy.Texts, Text: ""},
		{Name: "spare", Kind: policy.Texts, Text: "🦀"},
		{Name: "shares", Kind: policy.Numbers, Item: "x", Number: math.Inf(1)},
	}
	var e abi.Encoder
	var d abi.Decoder
	e.Configure(policy.NewConfig(list, values))
	load(t, &d, written(&e, nil), abi.OpConfigure)
	got, err := d.Config(list)
	if err != nil || !reflect.DeepEqual(got.Values(), values) {
		t.Errorf("%v: got %+v", err, got.Values())
	}
}

func TestDescribe_RoundTrips(t *testing.T) {
	t.Parallel()
	want := probe.Description([]byte(`[{"name":"größe"}]`))
	want.Info.Elastic, want.Info.LeastFirst, want.Info.YoungestFirst, want.Info.Monotone = true, true, true, true
	var e abi.Encoder
	var d abi.Decoder
	e.Describe()
	frame := written(&e, nil)
	load(t, &d, frame, abi.OpDescribe)
	if err := d.PutDescription(&want); err != nil {
		t.Fatal(err)
	}
	got, err := e.Description(frame)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v, want %+v", err, got, want)
	}
}

func TestDescribe_RejectsTruncatedText(t *testing.T) {
	t.Parallel()
	long := probe.Description(make([]byte, abi.SettingsCap+1))
	var e abi.Encoder
	var d abi.Decoder
	e.Describe()
	frame := written(&e, nil)
	load(t, &d, frame, abi.OpDescribe)
	if err := d.PutDescription(&long); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Description(frame); err == nil {
		t.Error("accepted")
	}
}

func TestPutError_TruncatesToCapacity(t *testing.T) {
	t.Parallel()
	var e abi.Encoder
	var d abi.Decoder
	e.Describe()
	frame := written(&e, nil)
	load(t, &d, frame, abi.OpDescribe)
	d.PutError("no room")
	if got := e.ErrorText(frame); got != "no room" {
		t.Errorf("got %q", got)
	}
	d.PutError(string(make([]byte, 2*abi.ErrorCap)))
	if got := e.ErrorText(frame); len(got) != abi.ErrorCap {
		t.Errorf("got %d bytes", len(got))
	}
}

// A call does not allocate once buffers have grown.
func TestEncoderAndDecoder_AllocateNothingOnceWarm(t *testing.T) {
	in := policytest.RandomCandidates(rand.New(rand.NewPCG(5, 6)), 20, 8)
	in.Preemptor.Labels, in.Preemptor.Annotations = nil, nil // maps are allocated per call
	in.Rows.Labels, in.Rows.Annotations = nil, nil
	options := policytest.RandomOptions(rand.New(rand.NewPCG(7, 8)), 20, 4)
	options.Preemptor.Labels, options.Preemptor.Annotations = nil, nil
	var e abi.Encoder
	var d abi.Decoder
	var buffer []byte
	var scores, read policy.VictimScores
	n := in.Rows.Len()
	read.Tier, read.Score = make([]int64, n), make([]float64, n)
	call := func() {
		e.Candidates(abi.OpScoreVictims, in, probe.AllColumns)
		buffer = abi.Grow(buffer, e.Size())
		e.Write(buffer)
		if _, err := d.Load(buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Candidates(); err != nil {
			t.Fatal(err)
		}
		if err := d.VictimScores(&scores); err != nil {
			t.Fatal(err)
		}
		e.VictimScores(buffer, &read)
		e.Options(options, probe.AllColumns)
		buffer = abi.Grow(buffer, e.Size())
		e.Write(buffer)
		if _, err := d.Load(buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Options(); err != nil {
			t.Fatal(err)
		}
	}
	call()
	if n := testing.AllocsPerRun(100, call); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
