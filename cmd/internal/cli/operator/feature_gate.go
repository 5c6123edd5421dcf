package operator

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// gateWords describes each feature gate.
var gateWords = map[string]string{
	"PriorityBasedScheduling":           "queue bindings by priority; off: by time of creation",
	"PriorityBasedPreemptiveScheduling": "bindings may evict others; requires PriorityBasedScheduling and --preempt-binding",
	"StrictPriorityClasses":             "refuse bindings with an unknown priority class; off: use priority 0",
}

// gatesDescribed lists the gates for the help of a command.
func gatesDescribed() string {
	var text strings.Builder
	for _, gate := range new(client.FeatureGates).All() {
		fmt.Fprintf(&text, "  %s (%s)\n      %s\n", gate.Name, gateState(gate), gateWords[gate.Name])
	}
	return strings.TrimRight(text.String(), "\n")
}

// gateState returns on or off, and whether that is the default.
func gateState(gate client.FeatureGate) string {
	state := "off"
	if gate.On() {
		state = "on"
	}
	if *gate.Value == nil {
		state += " by default"
	}
	return state
}

// gateSettings returns the completions of --feature-gate.
func gateSettings() (list []string) {
	for _, name := range client.FeatureGateNames() {
		list = append(list, name+"=true", name+"=false", name+"=default")
	}
	return list
}

// setGates applies settings of the form NAME=VALUE.
func setGates(gates *client.FeatureGates, settings []string) error {
	for _, setting := range settings {
		if err := setGate(gates, setting); err != nil {
			return err
		}
	}
	return nil
}

func setGate(gates *client.FeatureGates, setting string) error {
	name, value, ok := strings.Cut(setting, "=")
	if !ok {
		return cmdutil.Usagef("use "+name+"=true, "+name+"=false or "+name+"=default", "invalid --feature-gate %q: value is missing", setting)
	}
	for _, gate := range gates.All() {
		if gate.Name != name {
			continue
		}
		on, err := strconv.ParseBool(value)
		switch {
		case value == "default":
			*gate.Value = nil
		case err != nil:
			return cmdutil.Usagef("use "+name+"=true, "+name+"=false or "+name+"=default", "invalid --feature-gate %q: value must be true, false or default", setting)
		default:
			*gate.Value = &on
		}
		return nil
	}
	return cmdutil.Usagef("the feature gates are "+strings.Join(client.FeatureGateNames(), ", "), "unknown feature gate %q", name)
}
