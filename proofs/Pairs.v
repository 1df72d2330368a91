(** The dominating pair of adaptive rounds (docs/privacy/composition.md). *)
From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Voxpop Require Import Normal.
Open Scope R_scope.

Lemma Phi_positive x : 0 < Phi x.
Proof.
  assert (H := half_positive). assert (A := area_below_half (- x + 1)).
  assert (B : area (- x) < area (- x + 1)).
  { destruct (MVT_gen area (- x) (- x + 1) bell) as [c [_ C]].
    - intros. apply area_derive.
    - intros. apply continuity_pt_filterlim. apply (ex_derive_continuous area). eexists. apply area_derive.
    - assert (P := bell_positive c). nra. }
  rewrite area_opposite in B. unfold Phi. apply Rdiv_lt_0_compat; lra.
Qed.

(** delta of the pair at a = e^epsilon: impossible outcomes of mass h on either side, else a Gaussian of mu. *)
Definition pair (h mu a : R) : R := h + (1 - h) * gauss mu a.

Section Release.

(** The probabilities of the events of a release with and without the user. *)
Variable event : Type.
Variable P Q : event -> R.
Variable not : event -> event.
Hypothesis P_not : forall A, P (not A) = 1 - P A.
Hypothesis Q_not : forall A, Q (not A) = 1 - Q A.

Variable d mu : R.
Hypothesis d_positive : 0 <= d.
Hypothesis mu_positive : 0 < mu.

(** (epsilon, d + delta_G(epsilon; mu))-private for all epsilon >= 0, in both directions. *)
Hypothesis with_user : forall a A, 1 <= a -> P A - a * Q A <= d + gauss mu a.
Hypothesis without_user : forall a A, 1 <= a -> Q A - a * P A <= d + gauss mu a.

Definition mass : R := d / (2 * Phi (- (mu / 2))).

Lemma mass_pays a : 1 <= a -> d <= mass * (1 - gauss mu a).
Proof.
  intros A. assert (F := gauss_falls mu a mu_positive A). assert (X := Phi_positive (- (mu / 2))).
  assert (M : mass * (2 * Phi (- (mu / 2))) = d) by (unfold mass; field; lra).
  assert (N : 0 <= mass) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
  rewrite <- M. apply Rmult_le_compat_l; lra.
Qed.

(** The pair dominates the release at every a > 0, so it may stand for the release in compositions. *)
Theorem pair_dominates a A : 0 < a -> P A - a * Q A <= pair mass mu a /\ Q A - a * P A <= pair mass mu a.
Proof.
  intros Ap. unfold pair. destruct (Rle_dec 1 a) as [L | L].
  - assert (M := mass_pays a L). assert (X := with_user a A L). assert (Y := without_user a A L). lra.
  - (* Below 1 by complements: delta_G(a) = 1 - a + a delta_G(1 / a). *)
    assert (I : 1 <= / a) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    assert (M := mass_pays (/ a) I). assert (G := gauss_inverse mu a mu_positive Ap).
    assert (X := without_user (/ a) (not A) I). assert (Y := with_user (/ a) (not A) I).
    rewrite P_not, Q_not in X, Y. assert (U : a * / a = 1) by (field; lra).
    assert (E1 : a * (1 - Q A - / a * (1 - P A)) <= a * (d + gauss mu (/ a))) by (apply Rmult_le_compat_l; lra).
    assert (E2 : a * (1 - P A - / a * (1 - Q A)) <= a * (d + gauss mu (/ a))) by (apply Rmult_le_compat_l; lra).
    replace (a * (1 - Q A - / a * (1 - P A))) with (a - a * Q A - (a * / a) * (1 - P A)) in E1 by ring.
    replace (a * (1 - P A - / a * (1 - Q A))) with (a - a * P A - (a * / a) * (1 - Q A)) in E2 by ring.
    rewrite U in E1, E2.
    assert (E3 : a * d <= a * (mass * (1 - gauss mu (/ a)))) by (apply Rmult_le_compat_l; lra).
    assert (E4 : mass * (1 - gauss mu a) = a * (mass * (1 - gauss mu (/ a)))) by (rewrite G; ring).
    split; nra.
Qed.

End Release.

Print Assumptions pair_dominates.
