package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	defaultList = "default"
	podPrefix   = "openb_pod_list_"
	nodeList    = "openb_node_list_all_node.csv"

	// gpuMilli is the resource of thousandths of a GPU.
	gpuMilli = "gpu-milli"
	// gpuDevice is the device id in requests if GPUs are devices.
	gpuDevice = "nvidia/gpu"

	maxGPUs = 1024 // per node or pod: more is an input error
)

// qosBands maps the Kubernetes QoS classes of the trace to priorities.
func qosBands() map[string]int32 {
	return map[string]int32{"LS": 80, "Guaranteed": 80, "Burstable": 50, "BE": 20}
}

// OpenB imports the openb trace. See the package documentation.
func OpenB(opts Options, src Source) (*scenario.File, *Report, error) {
	pods, list, err := podList(src, opts.List)
	if err != nil {
		return nil, nil, err
	}
	opts.List = list
	b, err := newBuilder("openb", "openb 2023 ("+list+" pods)", "openb", opts)
	if err != nil {
		return nil, nil, err
	}
	o := openb{builder: b, bands: newBands(qosBands(), opts.Bands)}
	if err := o.readNodes(src); err != nil {
		return nil, b.report, err
	}
	if err := o.readPods(src, pods); err != nil {
		return nil, b.report, err
	}
	if err := o.bands.unused(); err != nil {
		return nil, b.report, err
	}
	return b.finish()
}

// podList returns the file of a pod list: the named file, the list in the options, the
// default, or the only one. It returns an error if there are several others.
func podList(src Source, list string) (file, name string, err error) {
	if src.File != "" && stem(src.File, "") != nodeList {
		name = strings.TrimPrefix(stem(src.File, ".csv"), podPrefix)
		if list != "" && list != name {
			return "", "", fmt.Errorf("%s is the list %s, but the options select %s; pass the folder instead", src.File, name, list)
		}
		return src.File, name, nil
	}
	if list != "" {
		file, err = src.must(podPrefix + list + ".csv")
		return file, list, err
	}
	all := src.match(podPrefix + "*.csv")
	if file := src.find(podPrefix + defaultList + ".csv"); file != "" {
		return file, defaultList, nil
	}
	if len(all) == 1 {
		return all[0], strings.TrimPrefix(stem(all[0], ".csv"), podPrefix), nil
	}
	if len(all) > 1 {
		return "", "", fmt.Errorf("several pod lists (%s); choose one by name", strings.Join(all, ", "))
	}
	_, err = src.must(podPrefix + defaultList + ".csv")
	return "", "", err
}

type openb struct {
	*builder
	bands *bands
}

func (o *openb) readNodes(src Source) error {
	file, err := src.must(nodeList)
	if err != nil {
		return err
	}
	t, err := o.openTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	sn, cpu, memory := t.column("sn"), t.column("cpu_milli"), t.column("memory_mib")
	gpu, gpuModel := t.column("gpu"), t.column("model")
	for t.next() {
		n := scenario.Node{
			ID:       o.name(t.text(sn)),
			Capacity: scenario.Quantities{"cpu": t.amount(cpu), "memory": t.amount(memory)},
		}
		gpus := t.small(gpu, maxGPUs)
		m := t.text(gpuModel)
		if m != "" {
			n.Attributes = map[string]string{"model": m}
		}
		switch {
		case gpus > 0 && o.opts.WholeGPUs:
			n.Devices = []scenario.Device{{ID: gpuDevice + "/" + cleanName(m), Count: int32(gpus)}}
		case gpus > 0:
			n.Capacity[gpuMilli] = int64(gpus) * 1000
		}
		if !o.node(n) {
			t.fail("node %q is listed twice", n.ID)
		}
	}
	if t.err != nil {
		return t.err
	}
	return o.shrink()
}

// podColumns holds the positions of the columns of a pod list that are read.
type podColumns struct {
	name, cpu, memory, gpus, milli, spec, qos, created, deleted, scheduled int
}

func (o *openb) readPods(src Source, file string) error {
	t, err := o.openTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	c := podColumns{
		name: t.column("name"), cpu: t.column("cpu_milli"), memory: t.column("memory_mib"),
		gpus: t.column("num_gpu"), milli: t.column("gpu_milli"), spec: t.column("gpu_spec"),
		qos: t.column("qos"), created: t.column("creation_time"),
		deleted: t.column("deletion_time"), scheduled: t.column("scheduled_time"),
	}
	for t.next() {
		o.report.TasksRead++
		o.pod(t, &c)
	}
	return t.err
}

func (o *openb) pod(t *table, c *podColumns) {
	id := o.name(t.text(c.name))
	if !o.reserveName("job ", id) {
		t.fail("pod %q is listed twice", id)
	}
	created, given := t.seconds(c.created)
	if !given {
		t.invalid(c.created, "seconds: a pod must have been created")
	}
	w := submission{at: time.Duration(created), job: scenario.Job{
		ID: id, Type: "batch", Groups: []scenario.Group{{Name: "pod", Count: new(1)}},
	}}
	deleted, ended := t.seconds(c.deleted)
	if ended && deleted < created {
		t.fail("the pod is deleted (%s) before it is created (%s)", t.text(c.deleted), t.text(c.created))
	}
	if t.err != nil || !o.sampled(id) || !o.inWindow(w.at, 1) || !o.setDuration(t, c, &w, deleted, ended) {
		return
	}
	o.request(t, c, &w.job.Groups[0])
	priority, known := o.bands.priority(t.text(c.qos))
	if !known {
		o.report.note(1, fmt.Sprintf("pods of the unknown QoS class %.40q", t.text(c.qos)), "priority 50")
	}
	w.job.Priority = &priority
	o.submit(w)
}

// setDuration sets the run time of a pod, or its stop time if it never ran. It returns
// false if the pod is left out.
func (o *openb) setDuration(t *table, c *podColumns, w *submission, deleted int64, ended bool) bool {
	scheduled, ran := t.seconds(c.scheduled)
	g := &w.job.Groups[0]
	switch {
	case !ran && o.opts.NeverRan != NeverRanKeep:
		o.report.leaveOut(1, "pods that were never scheduled and have no duration")
		return false
	case !ran && ended:
		o.report.note(1, "pods that were never scheduled", "imported; stopped when the trace deletes them")
		w.quits = max(time.Duration(deleted), w.at+time.Second)
	case !ran:
		o.report.note(1, "pods that were neither scheduled nor deleted", "imported; unlimited duration")
	case !ended:
		o.report.note(1, "pods without a deletion time", "imported; unlimited duration")
	case deleted < scheduled:
		o.report.leaveOut(1, "pods deleted before they were scheduled")
		return false
	case deleted == scheduled:
		o.report.note(1, "pods with a run time of 0", "duration 1s")
		g.Duration = scenario.Duration(time.Second)
	default:
		g.Duration = scenario.Duration(deleted - scheduled)
	}
	return true
}

// request sets the resources that the pod requests.
func (o *openb) request(t *table, c *podColumns, g *scenario.Group) {
	g.Resources = scenario.Quantities{"cpu": t.amount(c.cpu)}
	if m := t.amount(c.memory); m > 0 {
		g.Resources["memory"] = m
	} else {
		o.report.note(1, "pods without a memory request", "imported without memory")
	}
	gpus, milli := t.small(c.gpus, maxGPUs), t.small(c.milli, 1000*maxGPUs)
	if gpus == 0 {
		return
	}
	if gpus > 1 {
		milli = gpus * 1000
	}
	if o.opts.WholeGPUs {
		if milli < 1000 {
			o.report.note(1, "pods that share a GPU", "they request a whole GPU")
		}
		g.Devices = []scenario.DeviceRequest{{ID: gpuDevice, Count: new(int32(gpus))}}
	} else {
		g.Resources[gpuMilli] = int64(milli)
	}
	if spec := t.text(c.spec); spec != "" {
		models := strings.Split(spec, "|")
		slices.Sort(models)
		g.Constraints = []scenario.Constraint{{
			Attribute: "model", Operator: string(model.OpIn), Values: slices.Compact(models),
		}}
	}
}
