package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
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
	shared, err := user.LookupId("65534") // of all tasks without a user ID of their namespace
	must(t, err)
	server := newServer(t, "", fullLogConfig)
	server.start()
	c := server.client()
	_, err = c.Namespaces().Put(t.Context(), &client.Namespace{Name: "other"}, nil)
	must(t, err)
	for _, mode := range []struct {
		name, driver string
		uids         [2]string // of the tasks of two namespaces; "": not started
		warned       bool
	}{
		{"shared", `{}`, [2]string{shared.Uid, shared.Uid}, true},
		{"denied", "{denied_users: [" + shared.Username + "]}", [2]string{}, true},
		{"separate", `{uid_first: 20000, uid_count: 10}`, [2]string{"20000", "20001"}, false},
	} {
		node := newNode(t, server, filepath.Join(publicFolder(t), "data"), mode.driver)
		node.env = []string{"CEDE_DATACENTER=" + mode.name}
		node.process = containerIDs
		node.start()
		files := publicFolder(t)
		for i, namespace := range []string{"default", "other"} {
			j := shellJob(mode.name, 50, 1, 10, time.Second, fmt.Sprintf("id -u > %s/uid.new; mv %[1]s/uid.new %[1]s/%s; sleep 1000", files, namespace))
			j.Namespace, j.Datacenters = namespace, []string{mode.name}
			_, err := c.Jobs().Register(t.Context(), j, nil)
			must(t, err)
			if file := filepath.Join(files, namespace); mode.uids[i] != "" {
				checkUser(t, file, mode.uids[i])
			} else {
				checkDenied(t, c, j, file, shared.Username)
			}
			_, err = c.Jobs().Stop(t.Context(), j.ID, &client.StopOptions{WriteOptions: client.WriteOptions{Namespace: namespace}})
			must(t, err)
		}
		if log := node.stderr.String(); strings.Contains(log, "tasks of all namespaces share the user "+shared.Username) != mode.warned {
			t.Errorf("%s: warned %v, want %v:\n%s", mode.name, !mode.warned, mode.warned, log)
		}
		eventually(t, "all task processes have exited", func() bool { return len(taskProcesses(node)) == 0 })
		node.stop()
	}
}

// checkUser waits until a task has written its user ID to a file, and compares it.
func checkUser(t *testing.T, file, uid string) {
	t.Helper()
	eventually(t, "the task has written its user", func() bool { _, err := os.Stat(file); return err == nil })
	if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != uid {
		t.Errorf("%s: %q, want %s: %v", file, got, uid, err)
	}
}

// checkDenied waits until the task of a job has failed because its user is denied. The task would
// have written a file.
func checkDenied(t *testing.T, c *client.Client, j *client.Job, file, name string) {
	t.Helper()
	want := "user " + name + " is denied: set the user of the task, or change client.drivers.exec.denied_users"
	eventually(t, "the task is denied", func() bool {
		list, _, _ := c.Jobs().Allocations(t.Context(), j.ID, &client.QueryOptions{Namespace: j.Namespace}) // later, if it fails
		return slices.ContainsFunc(list, func(a *client.AllocationStub) bool {
			return slices.ContainsFunc(a.TaskStates["main"].Events, func(e client.TaskEvent) bool { return strings.Contains(e.DisplayMessage, want) })
		})
	})
	if got, err := os.ReadFile(file); err == nil {
		t.Errorf("%s in %s ran as %s", j.ID, j.Namespace, got)
	}
}
