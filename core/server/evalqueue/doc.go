// Package evalqueue delivers evaluations to workers.
package evalqueue
