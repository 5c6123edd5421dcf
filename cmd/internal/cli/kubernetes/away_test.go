package kubernetes

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

// While the controller is away, kube-scheduler gets an error at once and not after its
// timeout, and ignorable decides. When it is back, the proposal stands until the cluster
// is read. Then the nominated node of a pod replaces the response that was forgotten:
// another pod does not get its capacity.
func TestKubernetes_AwayAndBack(t *testing.T) {
	t.Parallel()
	api := apiservertest.New()
	var isDenied atomic.Bool
	api.Refuse = func(r apiservertest.Request) int {
		if isDenied.Load() && r.Resource == "pods" {
			return http.StatusForbidden
		}
		return 0
	}
	low, high, pending := pod("low", "n1", 1), pod("high", "n2", 500), pod("pending", "", 1000)
	api.Put(node("n1"), node("n2"), low, high, pending)
	before := start(t, api, newClient(), nil)
	before.ready()
	if _, text := before.send(http.MethodPost, "/kube/v1/preempt", "", proposal(pending, low, high)); !strings.Contains(text, names("uid-low")) || strings.Contains(text, names("uid-high")) {
		t.Fatalf("%s, want low", text)
	}
	before.stop()
	resp, err := newClient().Post(before.url+"/kube/v1/preempt", "application/json", strings.NewReader("{}"))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want a refused connection", err)
	}
	grace := int64(30)
	low.DeletionTimestamp, low.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &grace
	pending.Status.NominatedNodeName = "n1"
	api.Put(low, pending)

	isDenied.Store(true)
	after := start(t, api, newClient(), nil)
	second := pod("second", "", 1000)
	if _, text := after.send(http.MethodPost, "/kube/v1/preempt", "", proposal(second, low, high)); !strings.Contains(text, names("uid-low")) || !strings.Contains(text, names("uid-high")) {
		t.Errorf("%s, want the proposal", text)
	}
	if _, text := after.send(http.MethodPost, "/kube/v1/preempt?onFault=none", "", proposal(second, low, high)); text != `{"NodeNameToMetaVictims":{}}` {
		t.Errorf("%s, want no victims", text)
	}
	isDenied.Store(false)
	after.ready()
	if _, text := after.send(http.MethodPost, "/kube/v1/preempt", "", proposal(second, low, high)); !strings.Contains(text, names("uid-high")) || strings.Contains(text, names("uid-low")) {
		t.Errorf("%s, want high: the place of low is promised", text)
	}
}
