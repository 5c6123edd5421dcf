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

// The metrics that are read.
const (
	metricMemory = "process_resident_memory_bytes"
	metricCPU    = "process_cpu_seconds_total"
	metricLog    = `cede_storage_size_bytes{part="log"}`
)

// scrape reads the server's metrics by name and labels; none where they are not
// served.
func (t *Target) scrape(ctx context.Context) (map[string]float64, error) {
	if t.metrics == "" {
		return nil, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := t.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s answered %s", t.metrics, resp.Status)
	}
	values := readMetrics(resp.Body)
	t.peak = max(t.peak, int64(values[metricMemory]))
	return values, nil
}

// readMetrics reads Prometheus' text form: a name with labels and a value a line.
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

// probe looks at the memory once a second at most, so that its peak is known.
func (t *Target) probe(ctx context.Context) error {
	if time.Since(t.probed) < time.Second {
		return nil
	}
	t.probed = time.Now()
	_, err := t.scrape(ctx)
	return err
}
