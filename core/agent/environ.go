package agent

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// environment returns the environment of a task: the variables of its job, and the
// facts of its allocation, each under CEDE_ and under the name that programs written
// for Nomad expect. It contains no variable of the agent's own environment, because
// those may hold secrets.
func environment(node *Node, alloc *Allocation, t *Task, allocDir, taskDir string) []string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": taskDir}
	fact := func(name, value string) {
		if value != "" {
			env["CEDE_"+name], env["NOMAD_"+name] = value, value
		}
	}
	fact("ALLOC_ID", alloc.ID)
	fact("SHORT_ALLOC_ID", alloc.ID[:min(8, len(alloc.ID))])
	fact("ALLOC_NAME", alloc.Name)
	fact("ALLOC_INDEX", strconv.Itoa(alloc.Index))
	fact("ALLOC_DIR", allocDir)
	fact("TASK_DIR", taskDir)
	fact("TASK_NAME", t.Name)
	fact("GROUP_NAME", alloc.Group)
	fact("JOB_ID", alloc.JobID)
	fact("JOB_NAME", alloc.JobName)
	fact("NAMESPACE", alloc.Namespace)
	fact("DC", node.Datacenter)
	env["CEDE_NODE_ID"], env["CEDE_NODE_NAME"] = node.ID, node.Name
	if t.CPU > 0 {
		fact("CPU_LIMIT", strconv.FormatInt(t.CPU, 10))
	}
	if t.MemoryMB > 0 {
		fact("MEMORY_LIMIT", strconv.FormatInt(t.MemoryMB, 10))
	}
	for _, p := range alloc.Ports {
		fact("PORT_"+envName(p.Label), strconv.Itoa(p.Value))
		fact("HOST_PORT_"+envName(p.Label), strconv.Itoa(p.Value))
	}
	for _, d := range alloc.Devices {
		env["CEDE_DEVICES_"+envName(d.ID)] = strconv.Itoa(d.Count)
	}
	for k, v := range alloc.Meta {
		fact("META_"+envName(k), v)
	}
	maps.Copy(env, t.Env)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// envName converts a name into a part of a variable's name.
func envName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, s)
}
