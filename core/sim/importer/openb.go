package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	podPrefix = "openb_pod_list_"
	nodeList  = "openb_node_list_all_node.csv"

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
	b, err := build.New("openb", "openb 2023 ("+list+" pods)", "openb", opts)
	if err != nil {
		return nil, nil, err
	}
	o := openb{Builder: b, bands: build.NewBands(qosBands(), opts.Bands)}
	if err := o.readNodes(src); err != nil {
		return nil, b.Report, err
	}
	if err := o.readPods(src, pods); err != nil {
		return nil, b.Report, err
	}
	if err := o.bands.Unused(); err != nil {
		return nil, b.Report, err
	}
	return b.Finish()
}

// podList returns the file of a pod list: the named file, the list in the options, the
// default, or the only one. It returns an error if there are several others.
func podList(src Source, list string) (file, name string, err error) {
	if src.File != "" && build.Stem(src.File, "") != nodeList {
		name = strings.TrimPrefix(build.Stem(src.File, ".csv"), podPrefix)
		if list != "" && list != name {
			return "", "", fmt.Errorf("%s is the list %s, but the options select %s; pass the folder instead", src.File, name, list)
		}
		return src.File, name, nil
	}
	if list != "" {
		file, err = src.Must(podPrefix + list + ".csv")
		return file, list, err
	}
	all := src.Match(podPrefix + "*.csv")
	if file := src.Find(podPrefix + build.DefaultList + ".csv"); file != "" {
		return file, build.DefaultList, nil
	}
	if len(all) == 1 {
		return all[0], strings.TrimPrefix(build.Stem(all[0], ".csv"), podPrefix), nil
	}
	if len(all) > 1 {
		return "", "", fmt.Errorf("several pod lists (%s); choose one by name", strings.Join(all, ", "))
	}
	_, err = src.Must(podPrefix + build.DefaultList + ".csv")
	return "", "", err
}

type openb struct {
	*build.Builder
	bands *build.Bands
}

func (o *openb) readNodes(src Source) error {
	file, err := src.Must(nodeList)
	if err != nil {
		return err
	}
	t, err := o.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	sn, cpu, memory := t.Column("sn"), t.Column("cpu_milli"), t.Column("memory_mib")
	gpu, gpuModel := t.Column("gpu"), t.Column("model")
	for t.Next() {
		n := scenario.Node{
			ID:       o.Name(t.Text(sn)),
			Capacity: scenario.Quantities{"cpu": t.Amount(cpu), "memory": t.Amount(memory)},
		}
		gpus := t.Small(gpu, maxGPUs)
		m := t.Text(gpuModel)
		if m != "" {
			n.Attributes = map[string]string{"model": m}
		}
		switch {
		case gpus > 0 && o.Opts.WholeGPUs:
			n.Devices = []scenario.Device{{ID: gpuDevice + "/" + build.CleanName(m), Count: int32(gpus)}}
		case gpus > 0 && o.Opts.GPUShares:
			for i := range gpus {
				n.Devices = append(n.Devices, scenario.Device{ID: fmt.Sprintf("%s/%s-%d", gpuDevice, build.CleanName(m), i), Count: 1000})
			}
		case gpus > 0:
			n.Capacity[gpuMilli] = int64(gpus) * 1000
		}
		if !o.Node(n) {
			t.Fail("node %q is listed twice", n.ID)
		}
	}
	if t.Err() != nil {
		return t.Err()
	}
	return o.Shrink()
}

// podColumns holds the positions of the columns of a pod list that are read.
type podColumns struct {
	name, cpu, memory, gpus, milli, spec, qos, created, deleted, scheduled int
}

func (o *openb) readPods(src Source, file string) error {
	t, err := o.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	c := podColumns{
		name: t.Column("name"), cpu: t.Column("cpu_milli"), memory: t.Column("memory_mib"),
		gpus: t.Column("num_gpu"), milli: t.Column("gpu_milli"), spec: t.Column("gpu_spec"),
		qos: t.Column("qos"), created: t.Column("creation_time"),
		deleted: t.Column("deletion_time"), scheduled: t.Column("scheduled_time"),
	}
	for t.Next() {
		o.Report.TasksRead++
		o.pod(t, &c)
	}
	return t.Err()
}

func (o *openb) pod(t *build.Table, c *podColumns) {
	id := o.Name(t.Text(c.name))
	if !o.ReserveName("job ", id) {
		t.Fail("pod %q is listed twice", id)
	}
	created, given := t.Seconds(c.created)
	if !given {
		t.Invalid(c.created, "seconds: a pod must have been created")
	}
	w := build.Submission{At: time.Duration(created), Job: scenario.Job{
		ID: id, Type: "batch", Groups: []scenario.Group{{Name: "pod", Count: new(1)}},
	}}
	deleted, ended := t.Seconds(c.deleted)
	if ended && deleted < created {
		t.Fail("the pod is deleted (%s) before it is created (%s)", t.Text(c.deleted), t.Text(c.created))
	}
	if t.Err() != nil || !o.Sampled(id) || !o.InWindow(w.At, 1) || !o.setDuration(t, c, &w, deleted, ended) {
		return
	}
	o.request(t, c, &w.Job.Groups[0])
	priority, known := o.bands.Priority(t.Text(c.qos))
	if !known {
		o.Report.Note(1, fmt.Sprintf("pods of the unknown QoS class %.40q", t.Text(c.qos)), "priority 50")
	}
	w.Job.Priority = &priority
	o.Submit(w)
}

// setDuration sets the run time of a pod, or its stop time if it never ran. It returns
// false if the pod is left out.
func (o *openb) setDuration(t *build.Table, c *podColumns, w *build.Submission, deleted int64, ended bool) bool {
	scheduled, ran := t.Seconds(c.scheduled)
	g := &w.Job.Groups[0]
	switch {
	case !ran && o.Opts.NeverRan != NeverRanKeep:
		o.Report.LeaveOut(1, "pods that were never scheduled and have no duration")
		return false
	case !ran && ended:
		o.Report.Note(1, "pods that were never scheduled", "imported; stopped when the trace deletes them")
		w.Quits = max(time.Duration(deleted), w.At+time.Second)
	case !ran:
		o.Report.Note(1, "pods that were neither scheduled nor deleted", "imported; unlimited duration")
	case !ended:
		o.Report.Note(1, "pods without a deletion time", "imported; unlimited duration")
	case deleted < scheduled:
		o.Report.LeaveOut(1, "pods deleted before they were scheduled")
		return false
	case deleted == scheduled:
		o.Report.Note(1, "pods with a run time of 0", "duration 1s")
		g.Duration = scenario.Duration(time.Second)
	default:
		g.Duration = scenario.Duration(deleted - scheduled)
	}
	return true
}

// request sets the resources that the pod requests.
func (o *openb) request(t *build.Table, c *podColumns, g *scenario.Group) {
	g.Resources = scenario.Quantities{"cpu": t.Amount(c.cpu)}
	if m := t.Amount(c.memory); m > 0 {
		g.Resources["memory"] = m
	} else {
		o.Report.Note(1, "pods without a memory request", "imported without memory")
	}
	gpus, milli := t.Small(c.gpus, maxGPUs), t.Small(c.milli, 1000*maxGPUs)
	if gpus == 0 {
		return
	}
	if gpus > 1 {
		milli = gpus * 1000
	}
	switch {
	case o.Opts.WholeGPUs:
		if milli < 1000 {
			o.Report.Note(1, "pods that share a GPU", "they request a whole GPU")
		}
		g.Devices = []scenario.DeviceRequest{{ID: gpuDevice, Count: new(int32(gpus))}}
	case o.Opts.GPUShares:
		for range gpus {
			if share := int32(milli / gpus); share > 0 {
				g.Devices = append(g.Devices, scenario.DeviceRequest{ID: gpuDevice, Count: &share})
			}
		}
	default:
		g.Resources[gpuMilli] = int64(milli)
	}
	if spec := t.Text(c.spec); spec != "" {
		models := strings.Split(spec, "|")
		slices.Sort(models)
		g.Constraints = []scenario.Constraint{{
			Attribute: "model", Operator: string(model.OpIn), Values: slices.Compact(models),
		}}
	}
}
