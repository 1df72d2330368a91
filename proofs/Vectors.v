(** Vectors of n coordinates, as functions from the natural numbers of which the first n count. *)
From Coq Require Import Reals Lra Psatz.
Open Scope R_scope.

Definition vector := nat -> R.

Fixpoint total (n : nat) (f : vector) : R :=
  match n with O => 0 | S k => total k f + f k end.

Definition dot (n : nat) (x y : vector) : R := total n (fun i => x i * y i).
Definition square (n : nat) (x : vector) : R := dot n x x.
Definition norm (n : nat) (x : vector) : R := sqrt (square n x).
Definition minus (x y : vector) : vector := fun i => x i - y i.
Definition plus (x y : vector) : vector := fun i => x i + y i.

Lemma total_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> total n f <= total n g.
Proof.
  induction n; simpl; intros H; [lra|].
  assert (total n f <= total n g) by (apply IHn; intros; apply H; lia).
  assert (f n <= g n) by (apply H; lia). lra.
Qed.

Lemma total_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> total n f = total n g.
Proof.
  intros H. apply Rle_antisym; apply total_le; intros i Hi; rewrite (H i Hi); lra.
Qed.

Lemma total_plus n f g : total n (fun i => f i + g i) = total n f + total n g.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma total_scale n c f : total n (fun i => c * f i) = c * total n f.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma total_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= total n f.
Proof.
  intros H. assert (E : total n (fun _ => 0) = 0) by (clear; induction n; simpl; lra).
  rewrite <- E. now apply total_le.
Qed.

Lemma square_nonneg n x : 0 <= square n x.
Proof. apply total_nonneg; intros; nra. Qed.

Lemma dot_sym n x y : dot n x y = dot n y x.
Proof. apply total_ext; intros; lra. Qed.

Lemma dot_minus_left n x y z : dot n (minus x y) z = dot n x z - dot n y z.
Proof. unfold dot, minus. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma dot_minus_right n x y z : dot n z (minus x y) = dot n z x - dot n z y.
Proof. now rewrite dot_sym, dot_minus_left, (dot_sym n z x), (dot_sym n z y). Qed.

Lemma dot_plus_left n x y z : dot n (plus x y) z = dot n x z + dot n y z.
Proof. unfold dot, plus. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma dot_plus_right n x y z : dot n z (plus x y) = dot n z x + dot n z y.
Proof. now rewrite dot_sym, dot_plus_left, (dot_sym n z x), (dot_sym n z y). Qed.

Lemma dot_scale_left n c x y : dot n (fun i => c * x i) y = c * dot n x y.
Proof. unfold dot. rewrite <- total_scale. apply total_ext; intros; lra. Qed.

Lemma dot_scale_right n c x y : dot n x (fun i => c * y i) = c * dot n x y.
Proof. now rewrite dot_sym, dot_scale_left, dot_sym. Qed.

(** Of two vectors in the unit ball the product is at most 1. *)
Lemma dot_le_mean n x y : dot n x y <= (square n x + square n y) / 2.
Proof.
  assert (H := square_nonneg n (minus x y)). unfold square in *.
  rewrite dot_minus_left, !dot_minus_right, (dot_sym n y x) in H. lra.
Qed.

Lemma cauchy_schwarz n x y : dot n x y * dot n x y <= square n x * square n y.
Proof.
  assert (Y := square_nonneg n y). assert (X := square_nonneg n x).
  assert (H := square_nonneg n (minus (fun i => square n y * x i) (fun i => dot n x y * y i))).
  assert (E : square n (minus (fun i => square n y * x i) (fun i => dot n x y * y i))
              = square n y * (square n y * square n x - dot n x y * dot n x y)).
  { unfold square. rewrite dot_minus_left, !dot_minus_right, !dot_scale_left, !dot_scale_right.
    rewrite (dot_sym n y x). ring. }
  rewrite E in H. destruct (Rle_lt_or_eq_dec _ _ Y) as [P | Z]; [nra|].
  (* y is 0: the product with every vector is 0. *)
  assert (B : forall c, 0 <= square n x - 2 * c * dot n x y + c * c * square n y).
  { intros c. assert (K := square_nonneg n (minus x (fun i => c * y i))). unfold square in *.
    rewrite dot_minus_left, !dot_minus_right, !dot_scale_left, !dot_scale_right, (dot_sym n y x) in K. lra. }
  rewrite <- Z in *. destruct (Req_dec (dot n x y) 0) as [O | O]; [rewrite O; nra|].
  exfalso. specialize (B ((square n x + 1) / (2 * dot n x y))).
  replace (square n x - 2 * ((square n x + 1) / (2 * dot n x y)) * dot n x y
           + (square n x + 1) / (2 * dot n x y) * ((square n x + 1) / (2 * dot n x y)) * 0) with (-1) in B
    by (field; exact O). lra.
Qed.

Lemma norm_nonneg n x : 0 <= norm n x.
Proof. apply sqrt_pos. Qed.

Lemma norm_square n x : norm n x * norm n x = square n x.
Proof. apply sqrt_sqrt, square_nonneg. Qed.

Lemma norm_le n x y : square n x <= square n y -> norm n x <= norm n y.
Proof. apply sqrt_le_1_alt. Qed.

Lemma norm_ext n x y : (forall i, (i < n)%nat -> x i = y i) -> norm n x = norm n y.
Proof. intros H. unfold norm, square, dot. f_equal. apply total_ext. intros. now rewrite H. Qed.

Lemma triangle n x y : norm n (plus x y) <= norm n x + norm n y.
Proof.
  assert (X := norm_nonneg n x). assert (Y := norm_nonneg n y).
  assert (D : dot n x y <= norm n x * norm n y).
  { apply Rsqr_incr_0_var; [|nra]. unfold Rsqr.
    replace (norm n x * norm n y * (norm n x * norm n y))
      with ((norm n x * norm n x) * (norm n y * norm n y)) by ring.
    rewrite !norm_square. apply cauchy_schwarz. }
  apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. rewrite norm_square.
  assert (E : square n (plus x y) = square n x + 2 * dot n x y + square n y).
  { unfold square. rewrite dot_plus_left, !dot_plus_right, (dot_sym n y x). ring. }
  rewrite E, <- !norm_square. nra.
Qed.

Lemma norm_opposite n x y : norm n (minus x y) = norm n (minus y x).
Proof. unfold norm, square, dot, minus. f_equal. apply total_ext. intros. ring. Qed.
