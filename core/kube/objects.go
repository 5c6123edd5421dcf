package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The types hold what bears on scheduling, and what must be named because it
// does and cannot be expressed. Everything else of an object is skipped while it
// is read. DESIGN.md says why they are not k8s.io/api's.

// Metadata names an object.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	Labels            map[string]string `json:"labels"`
	Annotations       Annotations       `json:"annotations"`
	Owners            []Owner           `json:"ownerReferences"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
}

// Owner made an object.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// Annotations are those that bear on scheduling; others, which may be long, are
// dropped while they are read.
type Annotations map[string]string

const (
	mirrorPod  = "kubernetes.io/config.mirror"
	toleration = "preemption-toleration.scheduling.x-k8s.io/"
)

// UnmarshalJSON keeps what is known.
func (a *Annotations) UnmarshalJSON(text []byte) error {
	var all map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for k, v := range all {
		if k != mirrorPod && !strings.HasPrefix(k, toleration) {
			continue
		}
		if *a == nil {
			*a = Annotations{}
		}
		(*a)[k] = v
	}
	return nil
}

// Node is a machine.
type Node struct {
	Metadata Metadata   `json:"metadata"`
	Spec     NodeSpec   `json:"spec"`
	Status   NodeStatus `json:"status"`
}

// NodeSpec is what is wished of a node.
type NodeSpec struct {
	Unschedulable bool    `json:"unschedulable"`
	Taints        []Taint `json:"taints"`
}

// Taint keeps pods off a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// NodeStatus is what a node says.
type NodeStatus struct {
	Capacity    ResourceList    `json:"capacity"`
	Allocatable ResourceList    `json:"allocatable"`
	Conditions  []NodeCondition `json:"conditions"`
}

// NodeCondition is how well a node is.
type NodeCondition struct {
	Type              string `json:"type"`
	Status            string `json:"status"`
	LastHeartbeatTime string `json:"lastHeartbeatTime"`
}

// Pod is one instance of work.
type Pod struct {
	Metadata Metadata  `json:"metadata"`
	Spec     PodSpec   `json:"spec"`
	Status   PodStatus `json:"status"`
}

// PodSpec is what a pod wants.
type PodSpec struct {
	NodeName                  string                `json:"nodeName"`
	SchedulerName             string                `json:"schedulerName"`
	SchedulingGates           []NamedReference      `json:"schedulingGates"`
	Priority                  *int32                `json:"priority"`
	PriorityClassName         string                `json:"priorityClassName"`
	PreemptionPolicy          string                `json:"preemptionPolicy"`
	RestartPolicy             string                `json:"restartPolicy"`
	TerminationGracePeriod    *int64                `json:"terminationGracePeriodSeconds"`
	HostNetwork               bool                  `json:"hostNetwork"`
	RuntimeClassName          string                `json:"runtimeClassName"`
	Containers                []Container           `json:"containers"`
	InitContainers            []Container           `json:"initContainers"`
	Resources                 *ResourceRequirements `json:"resources"`
	Overhead                  ResourceList          `json:"overhead"`
	NodeSelector              map[string]string     `json:"nodeSelector"`
	Affinity                  *Affinity             `json:"affinity"`
	Tolerations               []Toleration          `json:"tolerations"`
	TopologySpreadConstraints []SpreadConstraint    `json:"topologySpreadConstraints"`
	Volumes                   []Volume              `json:"volumes"`
	ResourceClaims            []NamedReference      `json:"resourceClaims"`
	SchedulingGroup           json.RawMessage       `json:"schedulingGroup"`
	WorkloadRef               json.RawMessage       `json:"workloadRef"`
	OS                        *NamedReference       `json:"os"`
	ActiveDeadlineSeconds     *int64                `json:"activeDeadlineSeconds"`
}

// NamedReference is something that has a name.
type NamedReference struct {
	Name string `json:"name"`
}

// Container is a part of a pod.
type Container struct {
	Name          string               `json:"name"`
	RestartPolicy string               `json:"restartPolicy"` // of an init container: Always makes it a sidecar
	Resources     ResourceRequirements `json:"resources"`
	Ports         []Port               `json:"ports"`
}

// ResourceRequirements is what is asked for.
type ResourceRequirements struct {
	Requests ResourceList `json:"requests"`
	Limits   ResourceList `json:"limits"`
}

// Port is a port of a container, and where HostPort is set, of the node.
type Port struct {
	ContainerPort int32  `json:"containerPort"`
	HostPort      int32  `json:"hostPort"`
	HostIP        string `json:"hostIP"`
	Protocol      string `json:"protocol"`
}

// Toleration lets a pod go to nodes with a taint.
type Toleration struct {
	Key               string `json:"key"`
	Operator          string `json:"operator"`
	Value             string `json:"value"`
	Effect            string `json:"effect"`
	TolerationSeconds *int64 `json:"tolerationSeconds"`
}

// Affinity is where a pod wants to be.
type Affinity struct {
	Node    *NodeAffinity `json:"nodeAffinity"`
	Pod     *PodAffinity  `json:"podAffinity"`
	PodAnti *PodAffinity  `json:"podAntiAffinity"`
}

// NodeAffinity is about nodes.
type NodeAffinity struct {
	Required *struct {
		Terms []NodeTerm `json:"nodeSelectorTerms"`
	} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []struct {
		Weight     int32    `json:"weight"`
		Preference NodeTerm `json:"preference"`
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

// NodeTerm is requirements that must all hold. One without any matches no node.
type NodeTerm struct {
	Expressions []Requirement `json:"matchExpressions"`
	Fields      []Requirement `json:"matchFields"`
}

// Requirement relates a label to values.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// PodAffinity is about other pods.
type PodAffinity struct {
	Required  []PodTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []struct {
		Weight int32   `json:"weight"`
		Term   PodTerm `json:"podAffinityTerm"`
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

// PodTerm selects pods within a topology domain.
type PodTerm struct {
	Selector          *LabelSelector `json:"labelSelector"`
	Namespaces        []string       `json:"namespaces"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector"`
	TopologyKey       string         `json:"topologyKey"`
	MatchLabelKeys    []string       `json:"matchLabelKeys"`
	MismatchLabelKeys []string       `json:"mismatchLabelKeys"`
}

// SpreadConstraint spreads pods over domains.
type SpreadConstraint struct {
	MaxSkew            int32          `json:"maxSkew"`
	TopologyKey        string         `json:"topologyKey"`
	WhenUnsatisfiable  string         `json:"whenUnsatisfiable"`
	Selector           *LabelSelector `json:"labelSelector"`
	MinDomains         *int32         `json:"minDomains"`
	NodeAffinityPolicy string         `json:"nodeAffinityPolicy"`
	NodeTaintsPolicy   string         `json:"nodeTaintsPolicy"`
	MatchLabelKeys     []string       `json:"matchLabelKeys"`
}

// Volume is a volume, of which the kinds that bind a pod to nodes are known.
type Volume struct {
	Claim     json.RawMessage `json:"persistentVolumeClaim"`
	Ephemeral json.RawMessage `json:"ephemeral"`
	GCE       json.RawMessage `json:"gcePersistentDisk"`
	AWS       json.RawMessage `json:"awsElasticBlockStore"`
	RBD       json.RawMessage `json:"rbd"`
	ISCSI     json.RawMessage `json:"iscsi"`
}

// restrictsNodes is whether the volume may keep a pod off some nodes.
func (v *Volume) restrictsNodes() bool {
	return slices.ContainsFunc([]json.RawMessage{v.Claim, v.Ephemeral, v.GCE, v.AWS, v.RBD, v.ISCSI}, isSet)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// PodStatus is how far a pod has come.
type PodStatus struct {
	Phase             string            `json:"phase"`
	StartTime         string            `json:"startTime"`
	NominatedNodeName string            `json:"nominatedNodeName"`
	Conditions        []PodCondition    `json:"conditions"`
	Containers        []ContainerStatus `json:"containerStatuses"`
}

// PodCondition is one thing that holds of a pod or does not.
type PodCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// ContainerStatus says what a container was given, which a resize in place may
// have left above what it asks for now.
type ContainerStatus struct {
	Name      string       `json:"name"`
	Allocated ResourceList `json:"allocatedResources"`
}

// LabelSelector selects by labels.
type LabelSelector struct {
	Labels      map[string]string `json:"matchLabels"`
	Expressions []Requirement     `json:"matchExpressions"`
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		MinAvailable               *Bound         `json:"minAvailable"`
		MaxUnavailable             *Bound         `json:"maxUnavailable"`
		Selector                   *LabelSelector `json:"selector"`
		UnhealthyPodEvictionPolicy string         `json:"unhealthyPodEvictionPolicy"`
	} `json:"spec"`
	Status struct {
		DisruptionsAllowed *int32            `json:"disruptionsAllowed"`
		DisruptedPods      map[string]string `json:"disruptedPods"`
	} `json:"status"`
}

// PriorityClass is a named priority.
type PriorityClass struct {
	Metadata         Metadata `json:"metadata"`
	Value            int32    `json:"value"`
	GlobalDefault    bool     `json:"globalDefault"`
	PreemptionPolicy string   `json:"preemptionPolicy"`
	Description      string   `json:"description"`
}

// Namespace is a name, and labels that terms of affinity may select by.
type Namespace struct {
	Metadata Metadata `json:"metadata"`
}

// Workload is an object with a template of pods: a Deployment, StatefulSet,
// ReplicaSet, ReplicationController, DaemonSet or Job.
type Workload struct {
	Kind     string
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Replicas    *int32 `json:"replicas"`
		Parallelism *int32 `json:"parallelism"`
		Completions *int32 `json:"completions"`
		Suspend     bool   `json:"suspend"`
		Template    struct {
			Metadata Metadata `json:"metadata"`
			Spec     PodSpec  `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// isInvalidTime is whether a timestamp is there and is none.
func isInvalidTime(text string) bool { return text != "" && timeOf(text).IsZero() }

// timeOf parses a timestamp; the zero time is none, or none that is one.
func timeOf(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1990 || t.Year() > 2200 {
		return time.Time{}
	}
	return t
}
