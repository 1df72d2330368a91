(** The normal distribution and delta_G, from the integral of e^(-t^2/2) alone. *)
From Coq Require Import Reals Lra Psatz.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Definition bell (t : R) : R := exp (- (t * t) / 2).
Definition area (x : R) : R := RInt bell 0 x.

Lemma bell_continuous x : continuous bell x.
Proof. apply (ex_derive_continuous bell). unfold bell. auto_derive. exact I. Qed.

Lemma bell_integrable a b : ex_RInt bell a b.
Proof. apply (ex_RInt_continuous (V := R_CompleteNormedModule)). intros; apply bell_continuous. Qed.

Lemma bell_positive t : 0 < bell t.
Proof. apply exp_pos. Qed.

Lemma bell_even t : bell (- t) = bell t.
Proof. unfold bell. f_equal. field. Qed.

Lemma area_derive x : is_derive area x (bell x).
Proof.
  apply (is_derive_RInt bell area 0 x).
  - apply filter_forall. intros y. apply (RInt_correct (V := R_CompleteNormedModule)), bell_integrable.
  - apply bell_continuous.
Qed.

Lemma area_opposite x : area (- x) = - area x.
Proof.
  unfold area. apply (is_RInt_unique (V := R_CompleteNormedModule)).
  assert (H : is_RInt bell (- 0) (- - x) (area x)).
  { rewrite Ropp_0, Ropp_involutive. apply (RInt_correct (V := R_CompleteNormedModule)), bell_integrable. }
  assert (G := is_RInt_opp _ _ _ _ (is_RInt_comp_opp (V := R_NormedModule) bell 0 (- x) _ H)).
  apply (is_RInt_ext (V := R_NormedModule)) with (2 := G). intros t _. unfold opp; simpl. rewrite bell_even. ring.
Qed.

Lemma area_0 : area 0 = 0.
Proof. apply (RInt_point (V := R_CompleteNormedModule)). Qed.

Lemma area_rises x y : x <= y -> area x <= area y.
Proof.
  intros [L | E]; [|subst; lra].
  destruct (MVT_gen area x y bell) as [c [_ C]].
  - intros. apply area_derive.
  - intros. apply continuity_pt_filterlim. apply (ex_derive_continuous area). eexists. apply area_derive.
  - assert (P := bell_positive c). nra.
Qed.

(** The area stays below 3: for t >= 0 is e^(-t^2/2) <= e^(1/2 - t). *)
Lemma area_bounded x : area x <= 3.
Proof.
  destruct (Rle_dec x 0) as [N | N]; [apply Rle_trans with (area 0); [now apply area_rises | rewrite area_0; lra]|].
  assert (D : forall t, is_derive (fun t => area t + exp (1 / 2 - t)) t (bell t - exp (1 / 2 - t))).
  { intros t. apply (is_derive_plus (V := R_NormedModule)); [apply area_derive|].
    auto_derive; [exact I | unfold Rminus; ring]. }
  destruct (MVT_gen (fun t => area t + exp (1 / 2 - t)) 0 x (fun t => bell t - exp (1 / 2 - t))) as [c [_ C]].
  - intros t _. apply D.
  - intros t _. apply continuity_pt_filterlim. apply (ex_derive_continuous (fun t => area t + exp (1 / 2 - t))).
    eexists. apply D.
  - assert (B : bell c <= exp (1 / 2 - c)).
    { unfold bell. assert (Q := Rle_0_sqr (c - 1)). unfold Rsqr in Q.
      assert (T : - (c * c) / 2 <= 1 / 2 - c) by lra.
      destruct T as [T | T]; [left; now apply exp_increasing | right; now rewrite T]. }
    assert (E0 : exp (1 / 2 - 0) <= 3).
    { apply Rle_trans with (exp 1); [left; apply exp_increasing; lra | apply exp_le_3]. }
    assert (E1 := exp_pos (1 / 2 - x)). rewrite area_0 in C. nra.
Qed.

(** Half of the whole area, as the least upper bound: its value, sqrt(pi / 2), is not needed. *)
Lemma half_exists : { h | is_lub (fun a => exists x, a = area x) h }.
Proof.
  apply completeness.
  - exists 3. intros a [x E]. subst. apply area_bounded.
  - exists (area 0), 0. reflexivity.
Qed.
Definition half : R := proj1_sig half_exists.

Lemma area_below_half x : area x <= half.
Proof. assert (U := proj1 (proj2_sig half_exists)). apply U. now exists x. Qed.

Lemma half_positive : 0 < half.
Proof.
  assert (A := area_below_half 1).
  destruct (MVT_gen area 0 1 bell) as [c [_ C]].
  - intros. apply area_derive.
  - intros. apply continuity_pt_filterlim. apply (ex_derive_continuous area). eexists. apply area_derive.
  - rewrite area_0 in C. assert (P := bell_positive c). lra.
Qed.

(** The distribution function of the normal. *)
Definition Phi (x : R) : R := (half + area x) / (2 * half).

Lemma Phi_bounds x : 0 <= Phi x <= 1.
Proof.
  assert (H := half_positive). assert (A := area_below_half x). assert (B := area_below_half (- x)).
  rewrite area_opposite in B. unfold Phi. split.
  - apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
  - apply Rmult_le_reg_r with (2 * half); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Lemma Phi_opposite x : Phi (- x) = 1 - Phi x.
Proof. assert (H := half_positive). unfold Phi. rewrite area_opposite. field. lra. Qed.

Lemma Phi_rises x y : x <= y -> Phi x <= Phi y.
Proof.
  intros L. assert (H := half_positive). assert (A := area_rises x y L). unfold Phi.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra.
Qed.

Lemma Phi_derive x : is_derive Phi x (bell x / (2 * half)).
Proof.
  assert (H := half_positive). unfold Phi.
  apply (is_derive_ext (fun x => / (2 * half) * (half + area x))); [intros t; change (/ (2 * half) * (half + area t) = (half + area t) / (2 * half)); field; lra|].
  replace (bell x / (2 * half)) with (/ (2 * half) * (0 + bell x)) by (field; lra).
  apply (is_derive_scal (fun x => half + area x)). apply (is_derive_plus (V := R_NormedModule)).
  - apply (is_derive_const (V := R_NormedModule)).
  - apply area_derive.
Qed.

(** delta_G(ln a; mu), for a = e^epsilon > 0. *)
Definition gauss (mu a : R) : R := Phi (mu / 2 - ln a / mu) - a * Phi (- (mu / 2) - ln a / mu).

(** The two directions: delta_G(a) = 1 - a + a delta_G(1 / a). *)
Lemma gauss_inverse mu a : 0 < mu -> 0 < a -> gauss mu a = 1 - a + a * gauss mu (/ a).
Proof.
  intros M A. unfold gauss. rewrite ln_Rinv by exact A.
  replace (mu / 2 - - ln a / mu) with (- (- (mu / 2) - ln a / mu)) by (field; lra).
  replace (- (mu / 2) - - ln a / mu) with (- (mu / 2 - ln a / mu)) by (field; lra).
  rewrite !Phi_opposite. field. lra.
Qed.

Lemma gauss_1 mu : 0 < mu -> gauss mu 1 = 1 - 2 * Phi (- (mu / 2)).
Proof.
  intros M. unfold gauss. rewrite ln_1. replace (0 / mu) with 0 by (field; lra).
  rewrite !Rminus_0_r, Phi_opposite. ring.
Qed.

Lemma bell_shift mu l : 0 < mu -> bell (mu / 2 - l / mu) = exp l * bell (- (mu / 2) - l / mu).
Proof. intros M. unfold bell. rewrite <- exp_plus. f_equal. field. lra. Qed.

Lemma gauss_derive mu a : 0 < mu -> 0 < a -> is_derive (gauss mu) a (- Phi (- (mu / 2) - ln a / mu)).
Proof.
  intros M A. unfold gauss.
  set (u := fun a => mu / 2 - ln a / mu). set (v := fun a => - (mu / 2) - ln a / mu).
  assert (U : is_derive u a (- (/ a / mu))) by (unfold u; auto_derive; [exact A | field; lra]).
  assert (W : is_derive v a (- (/ a / mu))) by (unfold v; auto_derive; [exact A | field; lra]).
  assert (DU := is_derive_comp Phi u a _ _ (Phi_derive (u a)) U).
  assert (DV := is_derive_comp Phi v a _ _ (Phi_derive (v a)) W).
  assert (S : bell (u a) = a * bell (v a)) by (unfold u, v; rewrite bell_shift, exp_ln; auto).
  assert (DA := is_derive_mult (fun x => x) (fun x => Phi (v x)) a 1 _ (is_derive_id a) DV Rmult_comm).
  assert (D := is_derive_minus (V := R_NormedModule) _ _ _ _ _ DU DA).
  eapply is_derive_ext; [|replace (- Phi (- (mu / 2) - ln a / mu)) with
    (minus (scal (- (/ a / mu)) (bell (u a) / (2 * half)))
           (plus (mult 1 (Phi (v a))) (mult a (scal (- (/ a / mu)) (bell (v a) / (2 * half))))))];
    [intros t; reflexivity | exact D |].
  rewrite S. unfold minus, plus, opp, scal, mult; simpl. unfold mult; simpl. unfold v.
  assert (H := half_positive). field. repeat split; lra.
Qed.

(** delta_G falls in epsilon, and at most to its value at 0. *)
Lemma gauss_falls mu a : 0 < mu -> 1 <= a -> gauss mu a <= 1 - 2 * Phi (- (mu / 2)).
Proof.
  intros M [A | A]; [|subst; rewrite gauss_1; lra]. rewrite <- gauss_1 by exact M.
  destruct (MVT_gen (gauss mu) 1 a (fun t => - Phi (- (mu / 2) - ln t / mu))) as [c [Cb C]].
  - rewrite Rmin_left, Rmax_right by lra. intros t T. apply gauss_derive; lra.
  - rewrite Rmin_left, Rmax_right by lra. intros t T. apply continuity_pt_filterlim.
    apply (ex_derive_continuous (gauss mu)). eexists. apply gauss_derive; lra.
  - assert (P := Phi_bounds (- (mu / 2) - ln c / mu)). nra.
Qed.

Print Assumptions gauss_inverse.
Print Assumptions gauss_falls.
