(** The step of a user moves two histograms no further apart, for every convex set (docs/privacy/adaptive.md,
    individual.md and set-union.md). *)
From Coq Require Import Reals Lra Psatz List.
From Voxpop Require Import Vectors.
Open Scope R_scope.

Definition set := vector -> Prop.

Definition convex (K : set) : Prop :=
  forall x y s, K x -> K y -> 0 <= s <= 1 -> K (fun i => x i + s * (y i - x i)).

(** p is the point of K next to z. If K is closed and not empty, there is one. *)
Definition nearest (n : nat) (K : set) (z p : vector) : Prop :=
  K p /\ forall k, K k -> square n (minus z p) <= square n (minus z k).

Lemma square_minus n x y : square n (minus x y) = square n x - 2 * dot n x y + square n y.
Proof. unfold square. rewrite dot_minus_left, !dot_minus_right, (dot_sym n y x). ring. Qed.

(** The variational inequality, from the distance. *)
Lemma nearest_angle n K z p k :
  convex K -> nearest n K z p -> K k -> dot n (minus z p) (minus k p) <= 0.
Proof.
  intros C [Kp N] Kk. apply Rnot_lt_le. intros A.
  set (c := dot n (minus z p) (minus k p)) in *. set (q := square n (minus k p)).
  assert (Q : 0 <= q) by apply square_nonneg.
  (* Moving from p towards k by a small part s would lead nearer to z. *)
  set (s := Rmin 1 (c / (q + 1))).
  assert (P : 0 < c / (q + 1)) by (apply Rdiv_lt_0_compat; lra).
  assert (S0 : 0 < s) by (apply Rmin_glb_lt; lra). assert (S1 : s <= 1) by apply Rmin_l.
  assert (S2 : s * q < 2 * c).
  { assert (s <= c / (q + 1)) by apply Rmin_r.
    assert (s * q <= c / (q + 1) * q) by (apply Rmult_le_compat_r; lra).
    assert (c / (q + 1) * q = c - c / (q + 1)) by (field; lra). lra. }
  specialize (N _ (C p k s Kp Kk (conj (Rlt_le _ _ S0) S1))).
  assert (E : square n (minus z (fun i => p i + s * (k i - p i)))
              = square n (minus z p) - 2 * s * c + s * s * q).
  { unfold c, q, square, dot, minus. clearbody s. clear. induction n; simpl; [ring|]. rewrite IHn. ring. }
  rewrite E in N. nra.
Qed.

(** adaptive.md, "Shared items": for a convex K the step z -> z - P(z) brings no two points further apart. *)
Theorem step_nonexpansive n K z1 z2 p1 p2 :
  convex K -> nearest n K z1 p1 -> nearest n K z2 p2 ->
  square n (minus (minus z1 p1) (minus z2 p2)) <= square n (minus z1 z2).
Proof.
  intros C N1 N2.
  assert (H1 := nearest_angle n K z1 p1 p2 C N1 (proj1 N2)).
  assert (H2 := nearest_angle n K z2 p2 p1 C N2 (proj1 N1)).
  assert (H := square_nonneg n (minus p1 p2)).
  unfold square in *. repeat rewrite ?dot_minus_left, ?dot_minus_right in *.
  rewrite (dot_sym n z2 z1), (dot_sym n p1 z1), (dot_sym n p2 z1), (dot_sym n p1 z2), (dot_sym n p2 z2),
    (dot_sym n p2 p1) in *.
  lra.
Qed.

(** A user has the items W only. The points of K that are 0 off W are convex, and the step changes nothing off W. *)
Definition of_items (W : nat -> Prop) (K : set) : set := fun k => K k /\ forall i, ~ W i -> k i = 0.

Lemma of_items_convex W K : convex K -> convex (of_items W K).
Proof.
  intros C x y s [Kx X] [Ky Y] H. split; [now apply C|]. intros i I. rewrite X, Y; auto. lra.
Qed.

Lemma identity_off_items n W K z p i : nearest n (of_items W K) z p -> ~ W i -> minus z p i = z i.
Proof. intros [[_ O] _] I. unfold minus. rewrite O; auto. lra. Qed.

(** ** All users together

    A user is a convex set: every one of its steps projects onto it. Of two runs, each step errs by at most e. *)
Definition step_within (n : nat) (e : R) (K : set) (z after : vector) : Prop :=
  exists p, nearest n K z p /\ norm n (minus after (minus z p)) <= e.

Inductive run (n : nat) (e : R) : list set -> vector -> vector -> Prop :=
| run_nil z : run n e nil z z
| run_cons K users z w after : step_within n e K z w -> run n e users w after -> run n e (K :: users) z after.

Lemma far n x y z : norm n (minus x z) <= norm n (minus x y) + norm n (minus y z).
Proof.
  erewrite norm_ext; [apply triangle|]. intros. unfold plus, minus. ring.
Qed.

Lemma one_step n e K z1 z2 w1 w2 :
  convex K -> step_within n e K z1 w1 -> step_within n e K z2 w2 ->
  norm n (minus w1 w2) <= norm n (minus z1 z2) + 2 * e.
Proof.
  intros C [p1 [N1 E1]] [p2 [N2 E2]].
  assert (H := norm_le _ _ _ (step_nonexpansive _ _ _ _ _ _ C N1 N2)).
  assert (A := far n w1 (minus z1 p1) w2). assert (B := far n (minus z1 p1) (minus z2 p2) w2).
  rewrite (norm_opposite n (minus z2 p2) w2) in B. lra.
Qed.

(** set-union.md, "no later user increases the l2 distance between two histograms"; with rounding, 2 e per user. *)
Theorem later_users n e users : Forall convex users -> forall z1 z2 w1 w2,
  run n e users z1 w1 -> run n e users z2 w2 ->
  norm n (minus w1 w2) <= norm n (minus z1 z2) + 2 * e * INR (length users).
Proof.
  induction 1 as [|K users C _ IH]; intros z1 z2 w1 w2 R1 R2.
  - inversion R1; inversion R2; subst. simpl. lra.
  - inversion R1 as [|? ? ? v1 ? S1 T1]; inversion R2 as [|? ? ? v2 ? S2 T2]; subst.
    assert (A := one_step _ _ _ _ _ _ _ C S1 S2). assert (B := IH _ _ _ _ T1 T2).
    change (length (K :: users)) with (S (length users)). rewrite S_INR. lra.
Qed.

(** The sensitivity S = r + 2 N e: users before, the extra user (whose set lies in the ball of radius r), users after. *)
Theorem one_user_moves n e r before (K : set) after z u1 u2 x w1 w2 :
  Forall convex before -> Forall convex after -> 0 <= e -> (forall k, K k -> norm n k <= r) ->
  run n e before z u1 -> run n e after u1 w1 ->
  run n e before z u2 -> step_within n e K u2 x -> run n e after x w2 ->
  norm n (minus w1 w2) <= r + 2 * e * INR (length before + 1 + length after).
Proof.
  intros CB CA E0 B RB1 R1 RB2 [p [[Kp _] Ep]] R2.
  assert (H0 := later_users _ _ _ CB _ _ _ _ RB1 RB2).
  assert (Z : norm n (minus z z) = 0).
  { unfold norm. replace (square n (minus z z)) with 0; [apply sqrt_0|].
    rewrite square_minus. unfold square. lra. }
  rewrite Z in H0.
  assert (H2 := later_users _ _ _ CA _ _ _ _ R1 R2).
  assert (H1 : norm n (minus u1 x) <= norm n (minus u1 u2) + (r + e)).
  { assert (A := far n u1 u2 x). assert (A2 := far n u2 (minus u2 p) x).
    rewrite (norm_opposite n (minus u2 p) x) in A2.
    assert (norm n (minus u2 (minus u2 p)) = norm n p) by (apply norm_ext; intros; unfold minus; ring).
    specialize (B p Kp). lra. }
  rewrite !plus_INR. change (INR 1) with 1. nra.
Qed.

Print Assumptions step_nonexpansive.
Print Assumptions one_user_moves.
