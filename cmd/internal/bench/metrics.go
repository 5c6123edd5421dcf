package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Names of the metrics that are read.
const (
	metricMemory = "process_resident_memory_bytes"
	metricCPU    = "process_cpu_seconds_total"
	metricLog    = `cede_storage_size_bytes{part="log"}`

	metricPlans    = "cede_plan_verify_seconds_count"
	metricPlaced   = `cede_sched_placements_total{result="placed"}`
	metricRejected = `cede_sched_placements_total{result="rejected"}`
)

// scrape returns the metrics by name and labels, summed over all servers. It returns
// nil if metrics are not available.
func (t *Target) scrape(ctx context.Context) (map[string]float64, error) {
	var all map[string]float64
	for _, url := range t.metrics {
		values, err := t.scrapeOne(ctx, url)
		if err != nil {
			return nil, err
		}
		t.peak = max(t.peak, int64(values[metricMemory]))
		if all == nil {
			all = values
			continue
		}
		for name, v := range values {
			all[name] += v
		}
	}
	return all, nil
}

func (t *Target) scrapeOne(ctx context.Context, url string) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := t.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read-only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s answered %s", url, resp.Status)
	}
	return readMetrics(resp.Body), nil
}

// Conflicts counts instances that workers planned for capacity that other plans used
// first.
type Conflicts struct {
	Plans int `json:"plans"` // checked plans, including repeated checks
	// Placed and Rejected count instances; rejected ones were planned again.
	Placed   int     `json:"placed"`
	Rejected int     `json:"rejected"`
	Share    float64 `json:"share"` // Rejected / (Placed + Rejected), 0 to 1
}

// conflicts returns the difference between two scrapes; nil if servers do not report it.
func conflicts(before, after map[string]float64) *Conflicts {
	if after == nil {
		return nil
	}
	since := func(name string) int { return int(after[name] - before[name]) }
	c := &Conflicts{Plans: since(metricPlans), Placed: since(metricPlaced), Rejected: since(metricRejected)}
	if c.Placed+c.Rejected > 0 {
		c.Share = float64(c.Rejected) / float64(c.Placed+c.Rejected)
	}
	return c
}

// readMetrics parses the Prometheus text format: a name with labels and a value per
// line.
func readMetrics(r io.Reader) map[string]float64 {
	values := map[string]float64{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[line[:at]] = v
		}
	}
	return values
}

// probe samples the memory, at most once a second, to find its peak.
func (t *Target) probe(ctx context.Context) error {
	if time.Since(t.probed) < time.Second {
		return nil
	}
	t.probed = time.Now()
	_, err := t.scrape(ctx)
	return err
}
