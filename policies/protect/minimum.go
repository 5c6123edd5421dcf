package protect

import "github.com/cede-scheduler/cede/sdk/policy"

// minimum holds how long an allocation is protected, in nanoseconds: by label, or
// else by namespace, or else one value for all.
type minimum struct {
	labels     []byLabel
	namespaces []byNamespace
	others     int64
}

type byLabel struct {
	key, value string
	time       int64
}

type byNamespace struct {
	name string
	time int64
}

// of returns the minimum of a row. If several labels have one, the longest counts.
func (m *minimum) of(in *policy.Candidates, row int) int64 {
	if time, ok := m.ofLabels(in, row); ok {
		return time
	}
	if len(m.namespaces) > 0 {
		name := in.Strings[in.Rows.Namespace[row]]
		for i := range m.namespaces {
			if m.namespaces[i].name == name {
				return m.namespaces[i].time
			}
		}
	}
	return m.others
}

func (m *minimum) ofLabels(in *policy.Candidates, row int) (longest int64, ok bool) {
	if len(m.labels) == 0 {
		return 0, false
	}
	table := in.Rows.Labels
	for at := table.First[row]; at < table.First[row+1]; at++ {
		key, value := in.Strings[table.Key[at]], in.Strings[table.Value[at]]
		for i := range m.labels {
			if l := &m.labels[i]; l.key == key && l.value == value {
				longest, ok = max(longest, l.time), true
			}
		}
	}
	return longest, ok
}
