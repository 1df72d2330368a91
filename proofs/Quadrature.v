(** delta_G of a plan by verified quadrature: Items(max_items_per_user=100) at (3, 1e-7), whose rounds have mu = 0.5827326... *)
From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Specific_ops Specific_stdz Tactic.
From Voxpop Require Import Normal.

(** The tactics with numbers of Coq's own whole numbers, in place of the processor's 63-bit integers: no further axiom. *)
Module Floats := SpecificFloat StdZRadix2.
Module Tactics := IntervalTactic Floats.
Import Tactics.
Open Scope R_scope.

(** Beyond 9: for t >= 9 is e^(-t^2/2) <= e^(-9t/2). *)
Lemma beyond_9 : half <= area 9 + 1 / 10 ^ 18.
Proof.
  assert (D : forall t, is_derive (fun t => area t + 2 / 9 * exp (- (9 / 2) * t)) t (bell t - exp (- (9 / 2) * t))).
  { intros t. apply (is_derive_plus (V := R_NormedModule)); [apply area_derive|]. auto_derive; [exact I | field]. }
  apply (proj2 (proj2_sig half_exists)). intros v [x E]. subst v.
  assert (T : 2 / 9 * exp (- (9 / 2) * 9) <= 1 / 10 ^ 18) by interval with (i_prec 60).
  destruct (Rle_dec x 9) as [L | L].
  { assert (A := area_rises x 9 L). assert (P := exp_pos (- (9 / 2) * 9)). lra. }
  destruct (MVT_gen (fun t => area t + 2 / 9 * exp (- (9 / 2) * t)) 9 x (fun t => bell t - exp (- (9 / 2) * t)))
    as [c [Cb C]].
  - intros t _. apply D.
  - intros t _. apply continuity_pt_filterlim.
    apply (ex_derive_continuous (fun t => area t + 2 / 9 * exp (- (9 / 2) * t))). eexists. apply D.
  - rewrite Rmin_left, Rmax_right in Cb by lra.
    assert (B : bell c <= exp (- (9 / 2) * c)).
    { unfold bell. assert (Q : - (c * c) / 2 <= - (9 / 2) * c) by nra.
      destruct Q as [Q | Q]; [left; now apply exp_increasing | right; now rewrite Q]. }
    assert (P := exp_pos (- (9 / 2) * x)). nra.
Qed.

Lemma half_at_least : 12533 / 10000 <= half.
Proof.
  apply Rle_trans with (area 9); [|apply area_below_half]. unfold area, bell. integral with (i_prec 60, i_degree 12).
Qed.

Lemma area_between x : area 9 - area x = RInt bell x 9.
Proof.
  unfold area. rewrite <- (RInt_Chasles (V := R_CompleteNormedModule) bell 0 x 9) by apply bell_integrable.
  unfold plus; simpl. ring.
Qed.

(** mu of the plan, rounded up. *)
Definition mu : R := 58273265 / 100000000.

Lemma upper_tail : RInt bell (3 / mu - mu / 2) 9 <= 14952382 / 10 ^ 13.
Proof. unfold bell, mu. integral with (i_prec 60, i_degree 12, i_fuel 100). Qed.

Lemma lower_tail : 66955661 / 10 ^ 15 <= RInt bell (3 / mu + mu / 2) 9.
Proof. unfold bell, mu. integral with (i_prec 60, i_degree 12, i_fuel 100). Qed.

Lemma exp_3 : 20085536 / 10 ^ 6 <= exp 3.
Proof. interval with (i_prec 60). Qed.

(** delta_G(3; mu) <= 6.001e-8, which leaves 3.999e-8 of 1e-7 for novel items. *)
Theorem delta_of_a_plan : gauss mu (exp 3) <= 6001 / 10 ^ 11.
Proof.
  assert (H := half_at_least). assert (T := beyond_9). assert (U := upper_tail). assert (L := lower_tail).
  assert (A := area_between (3 / mu - mu / 2)). assert (B := area_between (3 / mu + mu / 2)). assert (E := exp_3).
  assert (N := area_below_half 9).
  unfold gauss. rewrite ln_exp.
  replace (mu / 2 - 3 / mu) with (- (3 / mu - mu / 2)) by ring.
  replace (- (mu / 2) - 3 / mu) with (- (3 / mu + mu / 2)) by ring.
  unfold Phi. rewrite !area_opposite.
  set (x := half + - area (3 / mu - mu / 2)) in *. set (y := half + - area (3 / mu + mu / 2)) in *.
  assert (X : x <= 14952382 / 10 ^ 13 + 1 / 10 ^ 18) by (unfold x; lra).
  assert (Y : 66955661 / 10 ^ 15 <= y) by (unfold y; lra).
  replace (x / (2 * half) - exp 3 * (y / (2 * half))) with ((x - exp 3 * y) / (2 * half)) by (field; lra).
  assert (Z : x - exp 3 * y <= 15040 / 10 ^ 11).
  { assert (20085536 / 10 ^ 6 * (66955661 / 10 ^ 15) <= exp 3 * y) by (apply Rmult_le_compat; lra). lra. }
  apply Rle_trans with (15040 / 10 ^ 11 / (2 * half)).
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra.
  - apply Rmult_le_reg_r with (2 * half); [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Print Assumptions delta_of_a_plan.
