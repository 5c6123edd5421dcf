package jobspec

import (
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The scheduler counts ports by their numbers alone. What people call them
// travels where it is read: in the environment of the group's tasks, as
// CEDE_PORT_http=8080. FromModel finds the names there again.

const portVariable = "CEDE_PORT_"

// namePorts writes the names of a group's ports into its tasks' environments.
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

// portNames finds the names of a group's ports: those that all its tasks know.
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
				names[port] = name // of several the first, so that it is always the same
			}
		}
	}
	return names
}

func isSetInAllTasks(m *model.Group, variable, value string) bool {
	for _, t := range m.Tasks {
		if t.Env[variable] != value {
			return false
		}
	}
	return true
}

// isPortName is whether a port's name can be part of a variable's, and is none of
// those that FromModel makes up.
func isPortName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plainRune(r) || r == '-' })
}

// fromPorts gives ports their names back, and takes them out of the tasks'
// environments.
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
