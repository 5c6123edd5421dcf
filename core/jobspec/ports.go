package jobspec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The scheduler identifies ports by number only. A port's label is passed to the
// tasks of the group in an environment variable, as in CEDE_PORT_http=8080, and
// FromModel restores the label from it.

const portVariable = "CEDE_PORT_"

// namePorts stores the labels of a group's ports in the environment of its tasks.
func namePorts(m *model.Group, names map[string]uint16) {
	for _, t := range m.Tasks {
		for name, port := range names {
			if t.Env == nil {
				t.Env = map[string]string{}
			}
			t.Env[portVariable+name] = strconv.Itoa(int(port))
		}
	}
}

// portNames returns the labels of a group's ports by number. A label counts only if
// every task of the group has its variable.
func portNames(m *model.Group) map[uint16]string {
	names := map[uint16]string{}
	if len(m.Tasks) == 0 {
		return names
	}
	for _, port := range m.Ports {
		text := strconv.Itoa(int(port))
		for variable, value := range m.Tasks[0].Env {
			name, ok := strings.CutPrefix(variable, portVariable)
			if !ok || value != text || !isPortName(name) || !isSetInAllTasks(m, variable, text) {
				continue
			}
			if known, twice := names[port]; !twice || name < known {
				names[port] = name // if several match, the first in sort order, so that the result is stable
			}
		}
	}
	return names
}

func isSetInAllTasks(m *model.Group, variable, value string) bool {
	return !slices.ContainsFunc(m.Tasks, func(t *model.Task) bool { return t.Env[variable] != value })
}

// isPortName reports whether name can be part of an environment variable's name. The
// labels that FromModel generates for unnamed ports are handled by the caller.
func isPortName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plainRune(r) || r == '-' })
}

// fromPorts converts ports, restores their labels and removes the label variables
// from the environment of the tasks.
func fromPorts(m *model.Group, g *client.TaskGroup) {
	if len(m.Ports) == 0 {
		return
	}
	names := portNames(m)
	n := &client.NetworkResource{}
	for _, p := range m.Ports {
		port := client.Port{Label: "port" + strconv.Itoa(int(p)), Value: int(p)}
		if name, ok := names[p]; ok {
			port.Label = name
			for _, t := range g.Tasks {
				delete(t.Env, portVariable+name)
			}
		}
		n.ReservedPorts = append(n.ReservedPorts, port)
	}
	for _, t := range g.Tasks {
		if len(t.Env) == 0 {
			t.Env = nil
		}
	}
	g.Networks = append(g.Networks, n)
}
