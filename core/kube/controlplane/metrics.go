package controlplane

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// loopback is a client for servers whose certificates need no verification.
var loopback = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: all servers are on loopback
}}

var outcomeLabel = regexp.MustCompile(`^cede_kube_preemptions_total{.*outcome="([a-z]+)"`)

// Outcomes returns the preemptions of an extender or plugin by final outcome, and those
// that are not final as "open", from its metrics.
func Outcomes(ctx context.Context, url string) (map[string]int, error) {
	counts := map[string]int{}
	err := samples(ctx, url, func(name string, value float64) {
		if value == 0 {
			return
		}
		if match := outcomeLabel.FindStringSubmatch(name); match != nil {
			counts[match[1]] += int(value)
		} else if strings.HasPrefix(name, "cede_kube_open_answers") {
			counts["open"] += int(value)
		}
	})
	return counts, err
}

// Gauge returns the value of a metric without labels.
func Gauge(ctx context.Context, url, metric string) (value float64, err error) {
	err = samples(ctx, url, func(name string, v float64) {
		if name == metric {
			value = v
		}
	})
	return value, err
}

// samples calls found for each sample of the metrics.
func samples(ctx context.Context, url string, found func(name string, value float64)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := loopback.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		text := lines.Text()
		end := strings.LastIndexByte(text, ' ')
		if value, err := strconv.ParseFloat(text[end+1:], 64); err == nil && end > 0 {
			found(text[:end], value)
		}
	}
	return lines.Err()
}
