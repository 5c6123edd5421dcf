package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// containerIDs are the user IDs of many containers: 0 to 65,535.
var containerIDs = syscall.SysProcAttr{
	Cloneflags:  syscall.CLONE_NEWUSER,
	UidMappings: []syscall.SysProcIDMap{{Size: 1 << 16}}, GidMappings: []syscall.SysProcIDMap{{Size: 1 << 16}},
	GidMappingsEnableSetgroups: true,
}

// unprivileged is the user of tasks without a user ID of their namespace.
const unprivileged = "nobody"

const sharedUserWarning = "tasks of all namespaces share the user " + unprivileged

// If the user IDs of namespaces do not exist, tasks run as an unprivileged user instead of as root,
// and the log of the agent has a warning. Users are denied as usual.
func TestUserIDs_MissingOnesAreReplaced(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	try := exec.Command("true")
	try.SysProcAttr = &containerIDs
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("cannot create user namespaces: %v: %s", err, out)
	}
	server := newServer(t, "", fullLogConfig)
	server.start()
	c := server.client()
	_, err := c.Namespaces().Put(t.Context(), &client.Namespace{Name: "other"}, nil)
	must(t, err)
	for _, mode := range []struct {
		name, drivers string
		uids          [2]string // of the tasks of two namespaces; "": not started
		warned        bool
	}{
		{"shared", `{}`, [2]string{"65534", "65534"}, true},
		{"denied", `{denied_users: [` + unprivileged + `]}`, [2]string{}, true},
		{"separate", `{uid_first: 20000, uid_count: 10}`, [2]string{"20000", "20001"}, false},
	} {
		node := newUserNode(t, server, mode.name, mode.drivers)
		node.start()
		files := publicFolder(t)
		for i, namespace := range []string{"default", "other"} {
			j := shellJob(mode.name, 50, 1, 10, time.Second, fmt.Sprintf("id -u > %s/uid.new; mv %[1]s/uid.new %[1]s/%s; sleep 1000", files, namespace))
			j.Namespace, j.Datacenters = namespace, []string{mode.name}
			_, err := c.Jobs().Register(t.Context(), j, nil)
			must(t, err)
			checkUser(t, c, j, filepath.Join(files, namespace), mode.uids[i])
			_, err = c.Jobs().Stop(t.Context(), j.ID, &client.StopOptions{WriteOptions: client.WriteOptions{Namespace: namespace}})
			must(t, err)
		}
		if log := node.stderr.String(); strings.Contains(log, sharedUserWarning) != mode.warned {
			t.Errorf("%s: warned %v, want %v:\n%s", mode.name, !mode.warned, mode.warned, log)
		}
		eventually(t, "all task processes have exited", func() bool { return len(taskProcesses(node)) == 0 })
		node.stop()
	}
}

// newUserNode configures a client node in a process with the user IDs of a container.
func newUserNode(t *testing.T, server *serverProcess, datacenter, drivers string) *serverProcess {
	t.Helper()
	public := publicFolder(t)
	node := newServer(t, filepath.Join(public, "data"), fmt.Sprintf(`datacenter: %s
client:
  enabled: true
  servers: [%q]
  resources: {memory: 1000}
  pressure: {enabled: false}
  drivers: {exec: %s}
`, datacenter, server.url, drivers))
	node.process = containerIDs
	t.Cleanup(func() { // tasks survive their agent
		for _, pid := range taskProcesses(node) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if the process has exited
		}
	})
	return node
}

// checkUser waits until the task of a job has written its user ID to a file, and compares it.
// If the ID is "", the task must fail to start because its user is denied.
func checkUser(t *testing.T, c *client.Client, j *client.Job, file, uid string) {
	t.Helper()
	if uid == "" {
		eventually(t, "the task is denied", func() bool {
			list, _, _ := c.Jobs().Allocations(t.Context(), j.ID, &client.QueryOptions{Namespace: j.Namespace}) // later, if it fails
			for _, a := range list {
				for _, e := range a.TaskStates["main"].Events {
					if strings.Contains(e.DisplayMessage, "user "+unprivileged+" is denied: set the user of the task, or change client.drivers.exec.denied_users") {
						return true
					}
				}
			}
			return false
		})
		if got, err := os.ReadFile(file); err == nil {
			t.Errorf("%s in %s ran as %s", j.ID, j.Namespace, got)
		}
		return
	}
	eventually(t, "the task has written its user", func() bool { _, err := os.Stat(file); return err == nil })
	if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != uid {
		t.Errorf("%s in %s runs as %q, want %s: %v", j.ID, j.Namespace, got, uid, err)
	}
}
