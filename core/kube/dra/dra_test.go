package dra

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
)

// gpu is a device of the driver gpu.example.com.
const gpu = `{"name": "gpu-0", "attributes": {"model": {"string": "A100"}, "index": {"int": 3}, "ecc": {"bool": true},
	"driverVersion": {"version": "1.2.3"}, "other.example.com/rack": {"string": "r1"}}, "capacity": {"memory": {"value": "40Gi"}}}`

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestExpression_SelectsAsKubernetes(t *testing.T) {
	device := decode[Device](t, gpu).fields("gpu.example.com")
	for text, want := range map[string]bool{
		`device.driver == "gpu.example.com"`: true,
		`device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'A100'`:    true,
		`device.attributes["gpu.example.com"].model in ["H100", "A100"]`:                                true,
		`!(device.attributes["gpu.example.com"].model in ["H100"])`:                                     true,
		`device.attributes["gpu.example.com"].index >= 3`:                                               true,
		`device.attributes["gpu.example.com"].index > 3`:                                                false,
		`device.attributes["gpu.example.com"].index < 4 || device.driver == "x"`:                        true,
		`device.attributes["gpu.example.com"].ecc`:                                                      true,
		`device.attributes["gpu.example.com"].missing == "x"`:                                           false,
		`device.attributes["gpu.example.com"].missing != "x"`:                                           false, // an error, which selects nothing
		`device.attributes["gpu.example.com"].missing == "x" || true`:                                   true,
		`has(device.attributes["gpu.example.com"].missing)`:                                             false,
		`has(device.attributes["gpu.example.com"].model)`:                                               true,
		`"gpu.example.com" in device.attributes && "model" in device.attributes["gpu.example.com"]`:     true,
		`"nic.example.com" in device.attributes`:                                                        false,
		`device.attributes["other.example.com"].rack == "r1"`:                                           true,
		`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`:                    true,
		`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))`:                     false,
		`device.capacity["gpu.example.com"].memory.isLessThan(quantity("41G"))`:                         false,
		`device.attributes["gpu.example.com"].model.startsWith("A1")`:                                   true,
		`device.attributes["gpu.example.com"].model.lowerAscii().matches("^a[0-9]+$")`:                  true,
		`size(device.attributes["gpu.example.com"].model) == 4`:                                         true,
		`device.attributes["gpu.example.com"].index == -3`:                                              false,
		`device.attributes["gpu.example.com"].model == 3`:                                               false,
		`device.attributes == device.attributes`:                                                        false, // not comparable here
		`device.allowMultipleAllocations`:                                                               false,
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].index == 1 || true`: true,
	} {
		e, err := parse(text)
		if err == nil {
			err = e.check()
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.selects(device); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

// An expression that is not supported is an error. It must not select nothing silently.
func TestExpression_RejectsTheRest(t *testing.T) {
	for _, text := range []string{
		"", "device.driver ==", "(device.driver", "cel.bind(a, 1, a == 1)", `device.attributes["d"].v.isGreaterThan(semver("1.0.0"))`,
		"device.driver == 'a' ? true : false", "[1, 2].exists(x, x == 1)", "self.driver", "1 + 1 == 2", "quantity()", "'it\\'s'",
		strings.Repeat("!", 1000) + "true", strings.Repeat("(", 1000), strings.Repeat("a", maxExpression+1),
	} {
		e, err := parse(text)
		if err == nil {
			err = e.check()
		}
		if err == nil {
			t.Errorf("%.40s: no error", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`device.attributes["d"].a == "x" && device.capacity["d"].m.compareTo(quantity("1Gi")) > 0`)
	f.Fuzz(func(_ *testing.T, text string) {
		if e, err := parse(text); err == nil && e.check() == nil {
			e.selects((&Device{}).fields("d"))
		}
	})
}

// objects returns a class for GPUs, and nodes with the given slices.
func objects(t *testing.T, slices ...string) *Objects {
	t.Helper()
	o := &Objects{Classes: []*Class{decode[Class](t, `{"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == \"gpu.example.com\""}}]}}`)}}
	for _, s := range slices {
		o.Slices = append(o.Slices, decode[Slice](t, s))
	}
	return o
}

func claim(t *testing.T, requests string) *Claim {
	t.Helper()
	return decode[Claim](t, `{"metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": {"requests": [`+requests+`]}}}`)
}

const twoModels = `{"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 2}, "devices": [
	{"name": "gpu-0", "attributes": {"model": {"string": "A100"}}}, {"name": "gpu-1", "attributes": {"model": {"string": "A100"}}},
	{"name": "gpu-2", "attributes": {"model": {"string": "H100"}}},
	{"name": "gpu-3", "attributes": {"model": {"string": "H100"}}, "taints": [{"key": "broken", "effect": "NoExecute"}]}]}}`

const outdated = `{"metadata": {"name": "old"}, "spec": {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1}, "devices": [{"name": "gpu-9"}]}}`

// Devices that the same claims select are one group; a claim requests the devices that
// its class and selectors select, and an allocation names their groups.
func TestInventory_GroupsDevicesByDefinition(t *testing.T) {
	o := objects(t, twoModels, outdated)
	some := claim(t, `{"name": "any", "exactly": {"deviceClassName": "gpu", "count": 2}},
		{"name": "h", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "device.attributes[\"gpu.example.com\"].model == \"H100\""}}]}}`)
	o.Claims = []*Claim{some}
	v := New(o)
	h100 := attributePrefix + `gpu && device.attributes["gpu.example.com"].model == "H100"`
	want := []model.Device{
		{ID: "gpu.example.com/device/1", Count: 2, Attributes: map[string]string{attributePrefix + "gpu": "1"}},
		{ID: "gpu.example.com/device/2", Count: 1, Attributes: map[string]string{attributePrefix + "gpu": "1", h100: "1"}},
	}
	if diff := cmp.Diff(want, v.Devices("n1")); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if n := v.Findings["devices with taints"]; n != 1 {
		t.Errorf("findings %v, want 1 device with taints", v.Findings)
	}
	x := Index{}
	for _, d := range v.Devices("n1") {
		x.Add(&d)
	}
	requests, findings := x.Requests(&some.Spec, v)
	if len(findings) > 0 || len(requests) != 2 || requests[0].Count != 2 || requests[1].Matches(&want[0]) || !requests[1].Matches(&want[1]) || !requests[0].Matches(&want[0]) {
		t.Errorf("requests %+v, findings %v", requests, findings)
	}
	if _, ok := v.Uses(some, requests); ok {
		t.Error("a claim without allocation has devices")
	}
	some.Status.Allocation = decode[Allocation](t, `{"devices": {"results": [
		{"request": "any", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}, {"request": "any", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"},
		{"request": "h", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-2"}]}}`)
	uses, ok := v.Uses(some, requests)
	if diff := cmp.Diff([]model.DeviceUse{{ID: want[0].ID, Count: 2}, {ID: want[1].ID, Count: 1}}, uses); !ok || diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// partitions returns a slice with a GPU of 7 units that is divided into partitions.
func partitions(sets ...string) string {
	var devices, counters []string
	for _, set := range sets {
		counters = append(counters, fmt.Sprintf(`{"name": %q, "counters": {"memory": {"value": "70Gi"}, "slice-0": {"value": "1"}}}`, set))
		for _, units := range []int{1, 3, 7} {
			slice := ""
			if units > 1 {
				slice = `, "slice-0": {"value": "1"}`
			}
			devices = append(devices, fmt.Sprintf(`{"name": "%s-%dg", "attributes": {"profile": {"string": "%dg"}},
				"consumesCounters": [{"counterSet": %q, "counters": {"memory": {"value": "%dGi"}%s}}]}`, set, units, units, set, units*10, slice))
		}
	}
	return `{"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1},
		"sharedCounters": [` + strings.Join(counters, ",") + `], "devices": [` + strings.Join(devices, ",") + `]}}`
}

// Partitions of a device are units of one group for each device. A request for several
// partitions can use several devices.
func TestInventory_PartitionsShareTheUnitsOfTheirDevice(t *testing.T) {
	o := objects(t, partitions("gpu-a", "gpu-b"))
	three := claim(t, `{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "selectors": [{"cel": {"expression": "device.attributes[\"gpu.example.com\"].profile == \"3g\""}}]}}`)
	o.Claims = []*Claim{three}
	v := New(o)
	devices, x := v.Devices("n1"), Index{}
	for i := range devices {
		x.Add(&devices[i])
	}
	if len(devices) != 2 || devices[0].ID != "gpu.example.com/partition/gpu-a" || devices[0].Count != 7 {
		t.Fatalf("devices %+v, want 7 units of gpu-a and of gpu-b", devices)
	}
	requests, findings := x.Requests(&three.Spec, v)
	if len(requests) != 2 || requests[0].Count != 3 || len(findings) > 0 {
		t.Errorf("requests %+v, findings %v; want 3 units twice", requests, findings)
	}
	node := &model.Node{Devices: devices}
	if n := len(node.DeviceChoices(&model.Ask{Devices: requests})); n != 3 {
		t.Errorf("%d choices, want 3: both partitions from one device, or one from each", n)
	}
	three.Status.Allocation = decode[Allocation](t, `{"devices": {"results": [
		{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-b-3g"}, {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-a-3g"}]}}`)
	uses, ok := v.Uses(three, requests)
	if diff := cmp.Diff([]model.DeviceUse{{ID: devices[1].ID, Count: 3}, {ID: devices[0].ID, Count: 3}}, uses); !ok || diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	// Any partition: their sizes differ, so that the units of a request are unknown.
	anyOf := claim(t, `{"name": "r", "exactly": {"deviceClassName": "gpu"}}`)
	if requests, findings := x.Requests(&anyOf.Spec, v); len(requests) != 0 || len(findings) != 1 {
		t.Errorf("requests %+v, findings %v; want a finding", requests, findings)
	}
}

func TestRequests_FindsWhatCannotBeExpressed(t *testing.T) {
	o := objects(t, twoModels)
	v := New(o)
	x := Index{}
	for _, d := range v.Devices("n1") {
		x.Add(&d)
	}
	for text, want := range map[string]string{
		`{"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": true}}`:                                           "0 []",
		`{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}`:                                       "0 [device requests for all devices of a node]",
		`{"name": "r", "exactly": {"deviceClassName": "fpga"}}`:                                                               "0 [device requests with unsupported selectors, or of an unknown class]",
		`{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}, {"name": "b", "deviceClassName": "gpu"}]}`: "1 [device requests with alternatives]",
		`{"name": "r", "exactly": {"deviceClassName": "gpu", "capacity": {}}}`:                                                "1 [device requests for a part of a shared device]",
		`{"name": "r"}`: "0 [device requests of an unknown form]",
	} {
		requests, findings := x.Requests(&claim(t, text).Spec, v)
		var subjects []string
		for _, f := range findings {
			subjects = append(subjects, f.Subject)
		}
		if got := fmt.Sprint(len(requests), " ", subjects); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
