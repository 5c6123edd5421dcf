package jobtrace

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// slurmNodes is the output of `scontrol show node --oneliner`, next to the dump.
const slurmNodes = "nodes.txt"

// readNodes reads the nodes. Each line describes one node as KEY=VALUE.
func (s *slurm) readNodes(src build.Source, file string) error {
	s.hasNodes = true
	l, err := s.OpenLines(src, file)
	if err != nil {
		return err
	}
	defer l.Close()
	for l.Next() {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(l.Text) {
			if key, value, ok := strings.Cut(word, "="); ok {
				fields[key] = value
			}
		}
		if len(fields) == 0 {
			continue
		}
		name := fields["NodeName"]
		cpus, err1 := strconv.Atoi(fields["CPUTot"])
		memory, err2 := strconv.ParseInt(fields["RealMemory"], 10, 64)
		if name == "" || err1 != nil || err2 != nil || cpus < 0 || cpus > maxCPU || memory < 0 || memory > model.MaxAmount {
			l.Fail("expected a node with NodeName, CPUTot and RealMemory, as `scontrol show node --oneliner` prints them")
			continue
		}
		n := scenario.Node{ID: s.Name(name), Capacity: scenario.Quantities{"cpu": int64(cpus) * milli, "memory": memory}}
		if n.Devices, err = slurmGres(fields["Gres"]); err != nil {
			l.Fail("%w", err)
			continue
		}
		s.addPartitions(&n, strings.Split(fields["Partitions"], ","))
		if !s.Node(n) {
			l.Fail("node %q is listed twice", n.ID)
		}
	}
	return l.Err()
}

func (s *slurm) addPartitions(n *scenario.Node, partitions []string) {
	for _, p := range partitions {
		if p == "" || p == "(null)" {
			continue
		}
		if n.Attributes == nil {
			n.Attributes = map[string]string{}
		}
		s.partitions[p] = true
		n.Attributes[partitionAttribute(p)] = "true"
	}
}

// slurmGres returns the GPUs of a node from generic resources such as
// gpu:a100:4(S:0-1),shard:8. It ignores other resources.
func slurmGres(text string) (devices []scenario.Device, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part, _, _ = strings.Cut(part, "(")
		words := strings.Split(part, ":")
		if words[0] != "gpu" || len(words) < 2 {
			continue
		}
		n, bad := strconv.Atoi(words[len(words)-1])
		if bad != nil || n < 0 || n > perNode {
			return nil, errors.New("invalid Gres " + strconv.Quote(part) + ": expected gpu:TYPE:COUNT")
		}
		kind := "gpu"
		if len(words) > 2 {
			kind = words[1]
		}
		if n > 0 {
			devices = append(devices, scenario.Device{ID: gpuDevice + "/" + build.CleanName(kind), Count: int32(n)})
		}
	}
	return devices, nil
}

// usage is the use of one node: what jobs added and released, by time.
type usage struct {
	changes []change
}

type change struct {
	at          int64 // seconds
	cpu, memory int64
	gpus        int
	gpuModel    string
	partition   string
}

// use records the use of the nodes on which a job ran.
func (s *slurm) use(t *build.Table, c *slurmColumns, r *record) {
	list := t.Text(c.nodeList)
	if list == "" || strings.HasPrefix(list, "None") || r.state == backwards {
		return
	}
	start, ok := t.Time(c.start, slurmTimes...)
	if !ok {
		return
	}
	one := change{
		at: start.Unix(), cpu: r.cpu, memory: r.memory, gpus: (r.gpus + r.nodes - 1) / r.nodes,
		gpuModel: s.intern(r.gpuModel), partition: s.intern(r.partition),
	}
	err := expandHosts(list, func(name string) {
		name = build.CleanName(name) // a copy, which does not retain the row
		u := s.used[name]
		if u == nil {
			u = &usage{}
			s.used[name] = u
		}
		u.changes = append(u.changes, one)
		if r.state == ran {
			u.changes = append(u.changes, change{at: one.at + max(r.run, 1), cpu: -one.cpu, memory: -one.memory, gpus: -one.gpus, gpuModel: one.gpuModel})
		}
	})
	if err != nil {
		t.Invalid(c.nodeList, "a node list such as n[1-3,7]")
	}
}

// nodesFromUse adds the nodes on which jobs ran, each with the largest use at one time.
func (s *slurm) nodesFromUse(file string) error {
	if len(s.used) == 0 {
		reason := "the nodes of the cluster are unknown"
		if !slices.ContainsFunc(s.records, func(r record) bool { return r.state == ran || r.state == running }) {
			reason = "no job has run, and " + reason
		}
		return &build.FileError{File: file, Err: errors.New(reason + ": write the output of `scontrol show node --oneliner` to " + slurmNodes + " next to the dump, or add NodeList to the format of sacct")}
	}
	for _, name := range slices.Sorted(maps.Keys(s.used)) {
		changes := s.used[name].changes
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.cpu, b.cpu)) })
		var now, peak change
		gpus, peakGPUs := map[string]int{}, map[string]int{}
		n := scenario.Node{ID: name}
		for i := range changes {
			c := &changes[i]
			now.cpu, now.memory = now.cpu+c.cpu, now.memory+c.memory
			peak.cpu, peak.memory = max(peak.cpu, now.cpu), max(peak.memory, now.memory)
			kind := cmp.Or(c.gpuModel, "gpu")
			gpus[kind] += c.gpus
			peakGPUs[kind] = max(peakGPUs[kind], gpus[kind])
			s.addPartitions(&n, []string{c.partition})
		}
		n.Capacity = scenario.Quantities{"cpu": peak.cpu, "memory": peak.memory}
		for _, kind := range slices.Sorted(maps.Keys(peakGPUs)) {
			if peakGPUs[kind] > 0 {
				n.Devices = append(n.Devices, scenario.Device{ID: gpuDevice + "/" + build.CleanName(kind), Count: int32(min(peakGPUs[kind], perNode))})
			}
		}
		s.Node(n)
	}
	s.Report.Note(len(s.used), "nodes derived from NodeList, as "+slurmNodes+" is missing", "the capacity is the largest use at one time")
	return nil
}
