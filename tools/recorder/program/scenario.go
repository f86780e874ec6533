package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// scenario is a cluster and a pod to place, as ordinary API objects.
type scenario struct {
	Config                 json.RawMessage                 `json:"config"`
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	PendingPods            []*v1.Pod                       `json:"pendingPods"`
	Pod                    *v1.Pod                         `json:"pod"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	Services               []*v1.Service                   `json:"services"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets"`
	DeviceClasses          []*resourcev1.DeviceClass       `json:"deviceClasses"`
	ResourceSlices         []*resourcev1.ResourceSlice     `json:"resourceSlices"`
	ResourceClaims         []*resourcev1.ResourceClaim     `json:"resourceClaims"`
}

func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("its scenario cannot be read: %w", err)
	}
	return nil
}

func encode(value any) ([]byte, error) {
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(text.Bytes(), "\n"), nil
}

// objects are what the API server would list. Pods that ended are left out: the scheduler's
// informer does not ask for them. A pod to place that names its node is left out too, because it
// would count as bound.
func (s *scenario) objects() []runtime.Object {
	all := []runtime.Object{}
	for _, node := range s.Nodes {
		all = append(all, node)
	}
	for _, pod := range append(append([]*v1.Pod{}, s.Pods...), s.PendingPods...) {
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			all = append(all, withIdentity(pod))
		}
	}
	if s.Pod != nil && s.Pod.Spec.NodeName == "" {
		all = append(all, s.Pod)
	}
	all = appendAll(all, s.Namespaces)
	all = appendAll(all, s.Services)
	all = appendAll(all, s.ReplicationControllers)
	all = appendAll(all, s.ReplicaSets)
	all = appendAll(all, s.StatefulSets)
	all = appendAll(all, s.PersistentVolumes)
	all = appendAll(all, s.PersistentVolumeClaims)
	all = appendAll(all, s.StorageClasses)
	all = appendAll(all, s.CSINodes)
	all = appendAll(all, s.CSIDrivers)
	all = appendAll(all, s.CSIStorageCapacities)
	all = appendAll(all, s.VolumeAttachments)
	all = appendAll(all, s.PodDisruptionBudgets)
	all = appendAll(all, s.DeviceClasses)
	all = appendAll(all, s.ResourceSlices)
	return appendAll(all, s.ResourceClaims)
}

func appendAll[T runtime.Object](all []runtime.Object, more []T) []runtime.Object {
	for _, object := range more {
		all = append(all, object)
	}
	return all
}

// withIdentity gives a pod what every stored pod has.
func withIdentity(pod *v1.Pod) *v1.Pod {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	return pod
}
