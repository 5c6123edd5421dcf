package heartbeat

import (
	"testing"
	"time"
)

func TestNodes_TTLGrowsWithTheCluster(t *testing.T) {
	h := NewNodes(Config{TTL: 10 * time.Second, Rate: 50})
	for nodes, want := range map[int]time.Duration{1: 10 * time.Second, 500: 10 * time.Second, 5000: 100 * time.Second} {
		if got := h.baseTTL(nodes); got != want {
			t.Errorf("%d nodes: TTL %v, want %v", nodes, got, want)
		}
	}
}
