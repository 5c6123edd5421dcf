package importer

import (
	"strings"
	"testing"
	"testing/fstest"
)

// The fuzz tests look for panics, and for scenarios that fail validation: an import
// validates its result.

func FuzzOpenB(f *testing.F) {
	f.Add("sn,cpu_milli,memory_mib,gpu,model\nn-0,96000,393216,8,G2\n",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"+
			"p-0,12000,16384,1,460,G2|T4,LS,Running,0,500,10\np-1,1,0,2,1000,,BE,Pending,1.5,9,\n")
	f.Fuzz(func(t *testing.T, nodes, pods string) {
		src := Source{FS: fstest.MapFS{
			nodeList:                   {Data: []byte(nodes)},
			podPrefix + "default.csv":  {Data: []byte(pods)},
			podPrefix + "default2.csv": {Data: []byte(pods)},
		}}
		for _, opts := range []Options{{}, {WholeGPUs: true, NeverRan: NeverRanKeep, Compress: 3, Keep: 0.5}, {GPUShares: true}} {
			if s, r, err := OpenB(opts, src); err == nil {
				checkImport(t, s, r)
			}
		}
	})
}

func FuzzGoogle(f *testing.F) {
	f.Add("job_id,task_index,priority,sched_class,submit_s,first_sched_s,end_s,end_kind,run_s,censored,attempts,evictions,cpu,mem,disk,diff_machine,first_machine\n"+
		"3,0,0,3,700.250,701.0,800.5,FINISH,99.5,0,1,0,0.02499,0.01,,1,5\n3,1,9,3,0.0,0.0,,RUNNING,99.5,0,1,0,,0.01,,0,5\n",
		"job_id,task_index,constraints\n3,0,\"Ql,>,4;wN,==,\"\n",
		"machine_id,GK,Ql\n5,aa,3\n")
	f.Fuzz(func(t *testing.T, tasks, constraints, attributes string) {
		src := Source{FS: fstest.MapFS{
			"machines.csv":              {Data: []byte("machine_id,cpu,mem,platform\n5,0.5,0.2,P0\n6,1,1,P1\n")},
			"tasks.csv":                 {Data: []byte(tasks)},
			"constraints_prod_t0.csv":   {Data: []byte(constraints)},
			"machine_attributes_t0.csv": {Data: []byte(attributes)},
		}}
		if s, r, err := Google(Options{Compress: 2}, src); err == nil {
			checkImport(t, s, r)
		}
	})
}

func FuzzGoogleRaw(f *testing.F) {
	f.Add("0,5,0,h,0.5,0.2\n7,5,1,h,,\n",
		"0,2,10,0,5,0,u,0,0,0.1,0.1,0.01,0\n5,,10,0,5,1,u,0,0,0.1,0.1,0.01,\n9,,10,0,5,2,u,0,0,0.1,0.1,0.01,1\n")
	f.Fuzz(func(t *testing.T, machines, tasks string) {
		src := Source{FS: fstest.MapFS{
			"machine_events-part-00000-of-00001.csv": {Data: []byte(machines)},
			"task_events-part-00000-of-00500.csv":    {Data: []byte(tasks)},
		}}
		if s, r, err := Google(Options{}, src); err == nil {
			checkImport(t, s, r)
		}
	})
}

func FuzzSWF(f *testing.F) {
	f.Add("0 1356996147 0 56011 64 1 1024 64 86400 68719476736 1 62 1 1 -1 1 1 1 {1241} q_1d 1:ppn=64:x86_64:cl_big#excl\n",
		"0\tbig\t2\t80\t1\t529426432\n")
	f.Add("; MaxNodes: 4\n; MaxProcs: 32\n1 10 0 100 20 -1 -1 20 -1 2048 1 1 1 1 3 1 -1 -1\n", "")
	f.Add("2 1356996700 71 0 7 1 1024 12 1209600 400 1 101 1 1 -1 1 1 1 {1129} q_2h 1:ppn=1+3:ppn=2:^big2.example.org\n",
		"0\tbig\t2\t80\t1\t529426432\n1 small 3 2 1 4096\n")
	f.Fuzz(func(t *testing.T, log, machines string) {
		if strings.Count(machines, "\n") > 10 {
			return // a million nodes per cluster: slow, without additional coverage
		}
		folder := fstest.MapFS{"log.swf": {Data: []byte(log)}}
		if machines != "" {
			folder["log.swf.machines"] = &fstest.MapFile{Data: []byte(machines)}
		}
		if s, r, err := SWF(Options{}, Source{FS: folder}); err == nil {
			checkImport(t, s, r)
		}
	})
}
