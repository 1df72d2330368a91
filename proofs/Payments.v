(** Whole numbers: what users pay, and the caps of their steps (docs/privacy/individual.md and adaptive.md). *)
From Coq Require Import ZArith Lia List Reals Lra Psatz.
Import ListNotations.

(** * Payments

    A pass is the charge, the rate and whether the user has a candidate. All three may follow from anything. *)
Open Scope Z_scope.

Record pass := { charge : Z; rate : option Z; takes_part : bool }.

Definition whole := 2 ^ 40.
Definition rate_bits := 20.

Definition payment (left : Z) (p : pass) : Z :=
  if takes_part p then
    Z.min left (match rate p with
                | None => charge p
                | Some r => Z.min (Z.shiftr (left * r) rate_bits) (16 * charge p)
                end)
  else 0.

(** Of a strategy the next pass is any function of the earlier payments; of the data, any function too. *)
Fixpoint payments (passes : list pass) (left : Z) : list Z :=
  match passes with
  | [] => []
  | p :: rest => payment left p :: payments rest (left - payment left p)
  end.

Definition fair (p : pass) : Prop := 0 <= charge p /\ match rate p with None => True | Some r => 0 <= r <= 2 ^ rate_bits end.

Lemma payment_bounds left p : 0 <= left -> fair p -> 0 <= payment left p <= left.
Proof.
  intros L [C R]. unfold payment. destruct (takes_part p); [|lia]. destruct (rate p) as [r|]; [|lia].
  assert (0 <= Z.shiftr (left * r) rate_bits) by (apply Z.shiftr_nonneg; nia). lia.
Qed.

Fixpoint sum (l : list Z) : Z := match l with [] => 0 | x :: rest => x + sum rest end.

(** individual.md, "All passes": x never pays more than its remaining budget, so all payments together are at most it. *)
Theorem payments_never_exceed passes : forall left,
  0 <= left -> Forall fair passes -> 0 <= sum (payments passes left) <= left.
Proof.
  induction passes as [|p rest IH]; intros left L F; simpl; [lia|].
  inversion F; subst. assert (P := payment_bounds left p L ltac:(assumption)).
  specialize (IH (left - payment left p) ltac:(lia) ltac:(assumption)). lia.
Qed.

(** "Never more than 16 times the charge". *)
Theorem payment_at_most_16 left p : 0 <= left -> fair p -> payment left p <= 16 * charge p.
Proof.
  intros L [C R]. unfold payment. destruct (takes_part p); [|lia]. destruct (rate p); lia.
Qed.

(** "Products stay below 2^61": nothing overflows in 64 bits. *)
Theorem products_fit left p r : 0 <= left <= whole -> fair p -> rate p = Some r -> left * r < 2 ^ 61.
Proof.
  unfold whole. intros L [_ R] E. rewrite E in R. unfold rate_bits in R.
  change (2 ^ 61) with (2 * (2 ^ 40 * 2 ^ 20)). nia.
Qed.

(** * The squares of mu of a user: at most M on every path *)
Open Scope R_scope.

(** One pass: the noise has sigma >= S / sqrt(m), and the distance is at most S sqrt(c / p). *)
Lemma square_of_pass S sigma m c p distance :
  0 < m -> 0 < p -> 0 <= c -> 0 <= S -> 0 < sigma -> S / sqrt m <= sigma ->
  0 <= distance <= S * sqrt (c / p) -> (distance / sigma) * (distance / sigma) <= c / p * m.
Proof.
  intros M P C S0 G N [D0 D].
  assert (CP : 0 <= c / p) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (Q : 0 < sqrt m) by now apply sqrt_lt_R0. assert (W := sqrt_pos (c / p)).
  assert (K : S <= sigma * sqrt m).
  { apply Rmult_le_reg_r with (/ sqrt m); [now apply Rinv_0_lt_compat|].
    replace (sigma * sqrt m * / sqrt m) with sigma by (field; lra). exact N. }
  assert (E : distance / sigma <= sqrt (c / p) * sqrt m).
  { apply Rmult_le_reg_r with sigma; [exact G|].
    replace (distance / sigma * sigma) with distance by (field; lra). nra. }
  assert (0 <= distance / sigma) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]).
  replace (c / p * m) with ((sqrt (c / p) * sqrt m) * (sqrt (c / p) * sqrt m)).
  - nra.
  - replace (sqrt (c / p) * sqrt m * (sqrt (c / p) * sqrt m))
      with ((sqrt (c / p) * sqrt (c / p)) * (sqrt m * sqrt m)) by ring. rewrite !sqrt_sqrt; lra.
Qed.

(** "Moves the weights by at most r = S sqrt(c / p) - kappa; rounding adds at most kappa": so the distance is as above. *)
Lemma individual_sensitivity S kappa c p r distance :
  r <= S * sqrt (c / p) - kappa -> distance <= r + kappa -> distance <= S * sqrt (c / p).
Proof. lra. Qed.

(** "c_x parts of M": a pass of p parts has m = M p / whole, so its square is at most M c / whole; the sum is at most M. *)
Definition square_at_most (M : R) (c : Z) : R := M * IZR c / IZR whole.

Theorem squares_at_most_M M passes :
  0 <= M -> Forall fair passes ->
  fold_right Rplus 0 (map (square_at_most M) (payments passes whole)) <= M.
Proof.
  intros M0 F. assert (W : 0 < IZR whole) by (apply IZR_lt; reflexivity).
  assert (B := payments_never_exceed passes whole ltac:(unfold whole; lia) F).
  assert (E : fold_right Rplus 0 (map (square_at_most M) (payments passes whole))
              = M * IZR (sum (payments passes whole)) / IZR whole).
  { generalize (payments passes whole). induction l as [|x l IH]; simpl.
    - unfold Rdiv. rewrite Rmult_0_r. ring.
    - rewrite IH, plus_IZR. unfold square_at_most. field. lra. }
  rewrite E. apply Rmult_le_reg_r with (IZR whole); [exact W|].
  replace (M * IZR (sum (payments passes whole)) / IZR whole * IZR whole)
    with (M * IZR (sum (payments passes whole))) by (field; lra).
  apply Rmult_le_compat_l; [exact M0|]. apply IZR_le. lia.
Qed.

(** * The lattice of caps

    A cap is [units] in [one] = 2^30 parts, a = units / one. *)
Open Scope Z_scope.

Definition one := 2 ^ 30.
Definition on_lattice (units : Z) : Prop :=
  units = 0 \/ units = one \/ (0 < units < one /\
    let rest := (one * one) mod (units * units) in units * units <= 4 * rest /\ 16 * rest <= 15 * (units * units)).

(** adaptive.md: with k items at the cap the others share 1 - k a^2, which is 0 or at least a^2 / 4. *)
Theorem what_is_left units k : on_lattice units -> 0 < units -> 0 <= k -> k * (units * units) <= one * one ->
  one * one - k * (units * units) = 0 \/ units * units <= 4 * (one * one - k * (units * units)).
Proof.
  intros [Z | [O | [[U V] [A B]]]] P K L; [lia | subst units | ].
  - assert (k = 0 \/ k = 1) by (unfold one in *; nia). unfold one in *. lia.
  - right. assert (Q : 0 < units * units) by nia. assert (D := Z.div_mod (one * one) (units * units) ltac:(lia)).
    set (rest := (one * one) mod (units * units)) in *. set (q := one * one / (units * units)) in *.
    assert (k <= q) by (apply Z.div_le_lower_bound; lia). nia.
Qed.

(** One item more than fit exceed 1 by at least a^2 / 16. *)
Theorem what_exceeds units k : on_lattice units -> 0 < units -> one * one < k * (units * units) ->
  units * units <= 16 * (k * (units * units) - one * one).
Proof.
  intros [Z | [O | [[U V] [A B]]]] P L; [lia | subst units | ].
  - assert (2 <= k) by (unfold one in *; nia). unfold one in *. nia.
  - assert (Q : 0 < units * units) by nia. assert (D := Z.div_mod (one * one) (units * units) ltac:(lia)).
    set (rest := (one * one) mod (units * units)) in *. set (q := one * one / (units * units)) in *.
    assert (q < k) by (apply Z.div_lt_upper_bound; lia). nia.
Qed.

(** As a sentence about a itself. *)
Theorem what_is_left_of_1 units k : on_lattice units -> 0 < units -> 0 <= k ->
  let a := (IZR units / IZR one)%R in (IZR k * (a * a) <= 1)%R ->
  (1 - IZR k * (a * a) = 0 \/ a * a / 4 <= 1 - IZR k * (a * a))%R.
Proof.
  intros L U K a H. assert (O : (0 < IZR one)%R) by (apply IZR_lt; reflexivity).
  assert (E : (IZR k * (a * a) * (IZR one * IZR one) = IZR (k * (units * units)))%R).
  { unfold a. rewrite !mult_IZR. field. lra. }
  assert (T : (1 * (IZR one * IZR one) = IZR (one * one))%R) by (rewrite mult_IZR; ring).
  assert (F : (a * a * (IZR one * IZR one) = IZR (units * units))%R) by (unfold a; rewrite mult_IZR; field; lra).
  assert (G : (0 < IZR one * IZR one)%R) by nra.
  destruct (what_is_left units k L U K) as [N | N].
  - apply le_IZR. rewrite <- E, <- T. nra.
  - left. assert (V : IZR (k * (units * units)) = IZR (one * one)) by (f_equal; lia). nra.
  - right. assert (V : (IZR (units * units) <= 4 * (IZR (one * one) - IZR (k * (units * units))))%R).
    { rewrite <- minus_IZR, <- mult_IZR. now apply IZR_le. }
    nra.
Qed.

Print Assumptions payments_never_exceed.
Print Assumptions payment_at_most_16.
Print Assumptions products_fit.
Print Assumptions square_of_pass.
Print Assumptions squares_at_most_M.
Print Assumptions what_is_left_of_1.
Print Assumptions what_exceeds.
