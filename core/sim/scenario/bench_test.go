package scenario

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// large returns a file of so many jobs, as an importer may write it. With 40,000 jobs
// and indentation it has 60 MB.
func large(jobs int) *File {
	f := &File{Version: 1, Name: "large", Description: "a trace"}
	for i := range 1500 {
		f.Nodes = append(f.Nodes, Node{
			ID: fmt.Sprintf("node-%d", i), Capacity: Quantities{"cpu": 64000, "memory": 262144, "disk": 1 << 20},
			Devices:    []Device{{ID: "nvidia/gpu/v100", Count: 8, Attributes: map[string]string{"memory": "16384"}}},
			Attributes: map[string]string{"zone": fmt.Sprint(i % 3), "rack": fmt.Sprint(i % 40)},
		})
	}
	for i := range jobs {
		group := Group{
			Name: "main", Resources: Quantities{"cpu": int64(100 + i%4000), "memory": int64(64 + i%9000), "disk": 100},
			Devices: []DeviceRequest{{ID: "nvidia/gpu", Count: new(int32(1))}},
			Labels:  map[string]string{"app": fmt.Sprintf("app-%d", i%500), "tier": "batch"},
			Constraints: []Constraint{
				{Attribute: "zone", Operator: "in", Values: []string{"0", "1"}}, {Attribute: "rack", Operator: "!=", Value: "7"},
			},
			Separate: []LabelTerm{{Labels: map[string]string{"app": fmt.Sprintf("app-%d", i%500)}, TopologyKey: "node"}},
			Duration: Duration(1+i%100000) * 1e9, KillTimeout: 5e9, Annotations: map[string]float64{"cost": float64(i) / 8},
		}
		job := Job{ID: fmt.Sprintf("job-%d", i), Namespace: "default", Type: "batch", Priority: new(int32(i % 12))}
		for _, name := range []string{"main", "side"} {
			group.Name = name
			job.Groups = append(job.Groups, group)
		}
		f.Jobs = append(f.Jobs, job)
		f.Events = append(f.Events, Event{At: Duration(i) * 1e8, Submit: job.ID})
	}
	return f
}

func encoded(b testing.TB, f *File, format Format) []byte {
	var out bytes.Buffer
	if err := Encode(&out, f, format); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// indented writes each value of a document on its own line.
func indented(text []byte) []byte {
	var out bytes.Buffer
	src := newJSONSource(bytes.NewReader(text))
	indent(&out, src, src.next(), 1)
	return out.Bytes()
}

func indent(out *bytes.Buffer, src source, ev event, depth int) {
	var open, end byte
	last := kindObjectEnd
	switch ev.kind {
	case kindString:
		fmt.Fprintf(out, "%q", ev.text)
		return
	case kindObject:
		open, end = '{', '}'
	case kindList:
		open, end, last = '[', ']', kindListEnd
	default:
		out.Write(ev.text)
		return
	}
	out.WriteByte(open)
	for i := 0; ; i++ {
		next := src.next()
		if next.kind == last {
			break
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n" + strings.Repeat(" ", depth))
		if next.kind == kindKey {
			fmt.Fprintf(out, "%q: ", next.text)
			next = src.next()
		}
		indent(out, src, next, depth+1)
	}
	out.WriteString("\n" + strings.Repeat(" ", depth-1))
	out.WriteByte(end)
}

func BenchmarkDecode(b *testing.B) {
	f := large(40_000)
	compact := encoded(b, f, JSON)
	small := encoded(b, large(4_000), YAML)
	for _, c := range []struct {
		name string
		text []byte
	}{{"json=compact/jobs=40000", compact}, {"json=indented/jobs=40000", indented(compact)}, {"yaml/jobs=4000", small}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode("f", bytes.NewReader(c.text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	f := large(40_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	f := large(40_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Encode(io.Discard, f, JSON); err != nil {
			b.Fatal(err)
		}
	}
}
