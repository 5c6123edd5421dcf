package benchcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// gpuTrace returns a folder with a trace of one node with two GPUs, and tasks that request
// 600 units of one.
func gpuTrace(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"openb_node_list_all_node.csv": "sn,cpu_milli,memory_mib,gpu,model\nn-0,96000,393216,2,G2\nn-1,96000,393216,0,\n",
		"openb_pod_list_default.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
			"p-0,1000,1024,1,600,,LS,Running,0,500,10\np-1,1000,1024,1,600,,BE,Pending,0,,\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func runBench(t *testing.T, args ...string) (*clitest.Env, cmdutil.Exit) {
	t.Helper()
	w := clitest.New(nil, args...)
	return w, cmdutil.Run(t.Context(), w.Env, NewRootCmd)
}

func TestGPUs_PrintsAndWritesCurves(t *testing.T) {
	w, exit := runBench(t, "gpus", gpuTrace(t), "--schedulers", "fgd,cede", "--seeds", "2", "--until", "0.5", "-w", "curve.csv")
	if exit != 0 {
		t.Fatalf("exit %d: %s", exit, w.Err.String())
	}
	if lines := strings.Split(w.Out.String(), "\n"); !strings.Contains(lines[0], "FGD") || !strings.Contains(w.Out.String(), "60.00 %  60.00–60.00") {
		t.Errorf("table:\n%s", w.Out.String())
	}
	rows := strings.Split(strings.TrimSpace(w.Files["curve.csv"]), "\n")
	if len(rows) != 1+4*61 || rows[0] != "scheduler,seed,requested_percent,allocated" || rows[1] != "fgd,1,0,0.30000" || rows[len(rows)-1] != "cede,2,60,0.60000" {
		t.Errorf("%d rows: %v", len(rows), rows)
	}
}

func TestGPUs_RejectsInvalidFlags(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--seeds must be between 1 and 1000", []string{"--seeds", "0"}},
		{"--until must be greater than 0", []string{"--until", "NaN"}},
		{`unknown scheduler "first-fit"`, []string{"--schedulers", "first-fit"}},
		{"lists fgd twice", []string{"--schedulers", "fgd,fgd"}},
		{"--schedulers requires a value", []string{"--schedulers", ""}},
		{"openb_pod_list_other.csv: no such file", []string{"--list", "other"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			w, exit := runBench(t, append([]string{"gpus", gpuTrace(t)}, c.args...)...)
			if exit != cmdutil.ExitUsage || !strings.Contains(w.Err.String(), c.want) {
				t.Errorf("exit %d: %s", exit, w.Err.String())
			}
		})
	}
}
